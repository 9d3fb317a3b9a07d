package verbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestRejoin: a pair that the peer has ended is made again by who has nothing to send, also where he had not made it, and says so where the peer has died since.
func TestRejoin(t *testing.T) {
	a, b := open(t, 0, 2), open(t, 1, 2)
	require.NoError(t, a.Rejoin(t.Context(), 1, nil))
	require.Nil(t, a.peers[1].cur.Load(), "it connects with nobody new")
	ended := func() {
		t.Helper()
		require.NoError(t, b.Disconnect(b.dial(a)))
		require.Eventually(t, func() bool {
			q := a.peers[1].cur.Load()
			return q != nil && q.state.Load() == pairEnded
		}, 10*time.Second, time.Millisecond)
	}
	ended()
	first := a.peers[1].cur.Load()
	require.NoError(t, a.Rejoin(t.Context(), 1, nil))
	next := a.peers[1].cur.Load()
	require.EqualValues(t, pairUp, next.state.Load())
	require.Greater(t, next.ep.Incarnation, first.ep.Incarnation)
	require.NoError(t, a.Rejoin(t.Context(), 1, nil))
	require.Same(t, next, a.peers[1].cur.Load(), "it is up")
	ended()
	b.silent.Store(true) // as a process that is killed
	require.NoError(t, b.Close())
	require.ErrorIs(t, a.Rejoin(t.Context(), 1, nil), transport.ErrPeerGone)
}
