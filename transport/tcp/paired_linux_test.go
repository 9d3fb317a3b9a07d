package tcp_test

import (
	"flag"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/transporttest"
)

// pairedFlag asks for measurements instead of tests.
var pairedFlag = flag.Int("paired", 0, "measure this NIC beside plain connections of package net, in so many turns")

// streamBytes is what a child that reads has read when it says so.
const streamBytes = 64 << 20

// TestPaired prints the table that docs/performance.md quotes: go test ./transport/tcp -run TestPaired -v -args -paired 21
// The other side of everything is another process, which sleeps where nothing comes.
func TestPaired(t *testing.T) {
	if *pairedFlag == 0 {
		t.Skip("measures: run with -args -paired 21")
	}
	dial := func(r role) net.Conn {
		_, k := start(t, r)
		c, err := net.Dial("tcp", string(k.Address))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	echo, sink := dial(role{Echo: true}), dial(role{Sink: true})
	me, _ := job(t, 2, 5*time.Second)
	require.NoError(t, me.do(transport.OpRead, 1, 0, 0, 8))
	small := make([]byte, 48)
	pingPong := func(n int) error {
		for range n {
			if _, err := echo.Write(small); err != nil {
				return err
			}
			if _, err := io.ReadFull(echo, small); err != nil {
				return err
			}
		}
		return nil
	}
	stream := func(n int) error { // until the other side has read it all
		for range n {
			if _, err := sink.Write(me.m.Data()[areaAt : areaAt+1<<20]); err != nil {
				return err
			}
		}
		_, err := io.ReadFull(sink, small[:1])
		return err
	}
	var cq [8]transport.Completion
	ours := func(kind transport.Kind, bytes, flight int, sleep bool) func(n int) error {
		op, err := me.op(kind, 1, areaAt, areaAt, bytes)
		require.NoError(t, err)
		ops := []transport.Op{op}
		return func(n int) error {
			for i := range n {
				if _, err := me.d.Post(ops); err != nil {
					return err
				}
				if i >= flight-1 {
					finish(t, me.d, cq[:], 1, sleep)
				}
			}
			finish(t, me.d, cq[:], min(n, flight-1), sleep)
			return nil
		}
	}
	const each = 2000
	require.NoError(t, transporttest.Measure(os.Stdout, *pairedFlag, []transporttest.Contest{
		{Name: "8 B put, sleeping", Each: each, Ours: ours(transport.OpWrite, 8, 1, true), Raw: pingPong},
		{Name: "8 B put, polling", Each: each, Ours: ours(transport.OpWrite, 8, 1, false), Raw: pingPong},
		{Name: "8 B get, sleeping", Each: each, Ours: ours(transport.OpRead, 8, 1, true), Raw: pingPong},
		{Name: "8 B get, polling", Each: each, Ours: ours(transport.OpRead, 8, 1, false), Raw: pingPong},
		{Name: "fetch-add, sleeping", Each: each, Ours: ours(transport.OpFetchAdd, 8, 1, true), Raw: pingPong},
		{Name: "1 MiB puts, 4 in flight", Each: streamBytes >> 20, Ours: ours(transport.OpWrite, 1<<20, 4, true), Raw: stream},
		{Name: "1 MiB gets, 4 in flight", Each: streamBytes >> 20, Ours: ours(transport.OpRead, 1<<20, 4, true), Raw: stream},
	}))
}

// drink reads, and says so with one byte whenever it has read streamBytes, until the other side has closed.
func drink(c net.Conn) {
	buf := make([]byte, 1<<20)
	for left := streamBytes; ; {
		n, err := c.Read(buf[:min(left, len(buf))])
		if err != nil {
			return
		}
		if left -= n; left > 0 {
			continue
		}
		if _, err := c.Write(buf[:1]); err != nil {
			return
		}
		left = streamBytes
	}
}
