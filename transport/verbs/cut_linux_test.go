package verbs

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestCutHandshake: a listener that cuts the first handshakes, and takes the next, is alive, though nobody can say so of its process; one that cuts all of them is
// gone when the patience is over.
func TestCutHandshake(t *testing.T) {
	b := open(t, 1, 2)
	l, err := net.Listen("tcp", net.JoinHostPort(b.self.At.Addr().String(), "0"))
	require.NoError(t, err)
	var calls, cuts atomic.Int32
	require.True(t, b.start(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if calls.Add(1) <= cuts.Load() {
				conn.Close()
			} else if !b.dials.remember(conn, b.size) || !b.start(func() { b.admit(conn) }) {
				conn.Close()
			}
		}
	}))
	t.Cleanup(func() { l.Close() }) // before the domain waits for who accepts
	to := b.self
	to.At = l.Addr().(*net.TCPAddr).AddrPort()

	cuts.Store(3)
	_, err = told(t, 10*time.Second, nil).Connect(t.Context(), 1, to.Append(nil))
	require.NoError(t, err)
	require.EqualValues(t, 4, calls.Load())

	cuts.Store(1 << 30)
	began := time.Now()
	_, err = told(t, 300*time.Millisecond, nil).Connect(t.Context(), 1, to.Append(nil))
	require.ErrorIs(t, err, transport.ErrPeerGone)
	require.ErrorContains(t, err, "the handshake was cut")
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
}
