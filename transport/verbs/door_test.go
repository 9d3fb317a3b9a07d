package verbs

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/sched"
	"gopgas/transport/verbs/internal/side"
)

// TestStrangersMakeRoom: however many strangers have called before and say nothing, a rank of the job is answered at once.
func TestStrangersMakeRoom(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &domain{size: 2, sched: sched.Goroutine(1), listener: l, auth: side.NewAuthority([]byte("secret"), "job")}
	d.ctx, d.cancel = context.WithCancel(t.Context())
	require.True(t, d.start(func() { d.serve(nil) }))
	defer func() {
		d.cancel()
		require.NoError(t, l.Close())
		d.dials.close()
		d.wg.Wait()
	}()
	call := func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		return conn
	}
	first := call()
	defer first.Close()
	for range 2*d.size + moreStrangers {
		defer call().Close()
	}
	honest := call()
	defer honest.Close()
	began := time.Now()
	_, err = d.auth.Greet(honest, &side.Hello{From: side.Address{Rank: 1, At: netip.MustParseAddrPort(l.Addr().String())}})
	require.NoError(t, err)
	require.Less(t, time.Since(began), 2*time.Second)
	_, err = first.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the oldest has made room")
}

// TestOwnDialsAtTheDoor: of whom this rank has dialed nobody makes room for strangers, and who has come in neither.
func TestOwnDialsAtTheDoor(t *testing.T) {
	var s dialSet
	conns := func(n int, in func(c net.Conn) bool) (all []net.Conn) {
		for range n {
			here, there := net.Pipe()
			t.Cleanup(func() { there.Close() })
			require.True(t, in(here))
			all = append(all, here)
		}
		return all
	}
	open := func(c net.Conn) bool { return c.SetDeadline(time.Time{}) == nil }
	const ranks = 3
	stranger := func(c net.Conn) bool { return s.remember(c, ranks) }
	own := conns(2*(2*ranks+moreStrangers), s.add)
	came := conns(1, stranger)[0]
	s.forget(came)
	strangers := conns(2*ranks+moreStrangers, stranger)
	for _, c := range strangers {
		require.True(t, open(c))
	}
	conns(1, stranger)
	require.False(t, open(strangers[0]))
	require.True(t, open(strangers[1]))
	require.True(t, open(came))
	for _, c := range own {
		require.True(t, open(c))
	}
	s.forget(own[0])
	s.close()
	require.True(t, open(own[0]))
	require.False(t, open(own[1]))
	require.False(t, open(strangers[1]))
	require.False(t, s.add(own[0]))
	require.False(t, stranger(own[0]))
}
