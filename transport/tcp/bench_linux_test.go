package tcp_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
	"gopgas/transport/tcp"
)

// benchPair opens two ranks in this process, with bytes of registered memory each.
func benchPair(tb testing.TB, bytes int) (d [2]transport.Domain, m [2]mem.Range, reg [2]transport.Region, ep transport.EP) {
	p := tcp.New(tcp.Config{})
	for r := range d {
		var err error
		d[r], err = p.Open(tb.Context(), transport.Config{Rank: r, Size: 2, Job: "bench", Secret: []byte("secret"), Sched: sched.Goroutine(2)})
		require.NoError(tb, err)
		m[r] = mem.Of(make([]uint64, bytes/8))
		reg[r], err = d[r].Register(m[r], transport.AllAccess)
		require.NoError(tb, err)
		tb.Cleanup(func() { _ = d[r].Close() })
	}
	ep, err := d[0].Connect(tb.Context(), 1, d[1].Address())
	require.NoError(tb, err)
	return d, m, reg, ep
}

// finish polls, and sleeps in Wait, until n completions have come.
func finish(tb testing.TB, d transport.Domain, cq []transport.Completion, n int, sleep bool) {
	for n > 0 {
		k, err := d.Poll(cq[:min(n, len(cq))])
		if err != nil {
			tb.Fatal(err)
		}
		for _, c := range cq[:k] {
			if c.Status != transport.StatusOK {
				tb.Fatalf("%+v", c)
			}
		}
		if n -= k; n > 0 && k == 0 && sleep {
			if err := d.Wait(context.Background()); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// rawPair is a plain connection of package net.
func rawPair(b *testing.B) (c, s net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer l.Close()
	c, err = net.Dial("tcp", l.Addr().String())
	require.NoError(b, err)
	s, err = l.Accept()
	require.NoError(b, err)
	b.Cleanup(func() { c.Close(); s.Close() })
	return c, s
}

func ping(b *testing.B, c net.Conn) {
	buf := make([]byte, 48)
	for b.Loop() {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProcesses is BenchmarkLatency with the other side in another process, which sleeps.
func BenchmarkProcesses(b *testing.B) {
	me, _ := jobOf(b, 2, role{Timeout: 5 * time.Second, Plain: true})
	b.Run("raw", func(b *testing.B) { ping(b, dialPlain(b, me.cards[1].Plain, plainEcho)) })
	require.NoError(b, me.do(transport.OpRead, 1, 0, 0, 8))
	var cq [1]transport.Completion
	for _, how := range []string{"wait", "poll"} {
		for name, kind := range map[string]transport.Kind{"put8": transport.OpWrite, "get8": transport.OpRead} {
			b.Run(name+"-"+how, func(b *testing.B) {
				op, err := me.op(kind, 1, 0, 0, 8)
				require.NoError(b, err)
				ops := []transport.Op{op}
				for b.Loop() {
					if _, err := me.d.Post(ops); err != nil {
						b.Fatal(err)
					}
					finish(b, me.d, cq[:], 1, how == "wait")
				}
			})
		}
	}
}

// BenchmarkLatency compares one operation and its completion with a ping-pong over a connection of package net.
func BenchmarkLatency(b *testing.B) {
	var cq [16]transport.Completion
	b.Run("raw", func(b *testing.B) {
		c, s := rawPair(b)
		go echo(s, 48)
		ping(b, c)
	})
	for _, how := range []struct {
		name  string
		sleep bool
	}{{"wait", true}, {"poll", false}} {
		d, m, reg, ep := benchPair(b, 4096)
		for _, k := range []struct {
			name string
			op   transport.Op
		}{
			{"put", transport.Op{Kind: transport.OpWrite, Flags: transport.FlagInline}},
			{"get", transport.Op{Kind: transport.OpRead}},
			{"add", transport.Op{Kind: transport.OpFetchAdd}},
		} {
			op := k.op
			op.Flags |= transport.FlagSignaled
			op.EP, op.NSGE, op.RAddr, op.RKey = ep, 1, m[1].Addr(), reg[1].RKey
			op.SGE[0] = transport.SGE{Mem: m[0].Slice(0, 8), LKey: reg[0].LKey}
			b.Run(k.name+"8-"+how.name, func(b *testing.B) {
				b.ReportAllocs()
				ops := []transport.Op{op}
				for b.Loop() {
					if _, err := d[0].Post(ops); err != nil {
						b.Fatal(err)
					}
					finish(b, d[0], cq[:], 1, how.sleep)
				}
			})
		}
	}
}

// BenchmarkStream compares puts of 1 MiB with writes to a connection of package net whose other end reads.
func BenchmarkStream(b *testing.B) {
	const size, flight = 1 << 20, 4
	var cq [16]transport.Completion
	b.Run("raw", func(b *testing.B) {
		c, s := rawPair(b)
		go func() {
			buf := make([]byte, size)
			for {
				if _, err := s.Read(buf); err != nil {
					return
				}
			}
		}()
		buf := make([]byte, size)
		b.SetBytes(size)
		for b.Loop() {
			if _, err := c.Write(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, k := range []struct {
		name string
		kind transport.Kind
	}{{"put", transport.OpWrite}, {"get", transport.OpRead}} {
		b.Run(k.name, func(b *testing.B) {
			d, m, reg, ep := benchPair(b, size)
			b.SetBytes(size)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				// As above, the bytes lie in one place at each end: how far memory is away is not the question.
				op := transport.Op{Kind: k.kind, Flags: transport.FlagSignaled, EP: ep, NSGE: 1, RAddr: m[1].Addr(), RKey: reg[1].RKey}
				op.SGE[0] = transport.SGE{Mem: m[0], LKey: reg[0].LKey}
				if _, err := d[0].Post([]transport.Op{op}); err != nil {
					b.Fatal(err)
				}
				if n++; n >= flight {
					finish(b, d[0], cq[:], 1, true)
				}
			}
			finish(b, d[0], cq[:], min(n, flight-1), true)
		})
	}
}

// BenchmarkRate posts batches of 64 puts of 8 bytes, of which the last is signalled.
func BenchmarkRate(b *testing.B) {
	const batch = 64
	var cq [16]transport.Completion
	d, m, reg, ep := benchPair(b, 4096)
	ops := make([]transport.Op, batch)
	for i := range ops {
		ops[i] = transport.Op{Kind: transport.OpWrite, Flags: transport.FlagInline, EP: ep, NSGE: 1, RAddr: m[1].Addr() + uint64(8*i), RKey: reg[1].RKey}
		ops[i].SGE[0].Mem = m[0].Slice(8*i, 8)
	}
	ops[batch-1].Flags |= transport.FlagSignaled
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for left := ops; len(left) > 0; {
			k, err := d[0].Post(left)
			if err != nil {
				b.Fatal(err)
			}
			left = left[k:]
			if len(left) > 0 {
				finish(b, d[0], cq[:], 1, true)
				n--
			}
		}
		if n++; n >= 2 {
			finish(b, d[0], cq[:], 1, true)
			n--
		}
	}
	finish(b, d[0], cq[:], n, true)
}
