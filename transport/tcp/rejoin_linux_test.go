package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
)

// TestRejoin: a link that the peer has ended is made again by who has nothing to send, whoever had made it, and he hears so where the peer has died since.
func TestRejoin(t *testing.T) {
	a, b := openRank(t, 0, 2, Config{}, transport.Config{}), openRank(t, 1, 2, Config{}, transport.Config{})
	rejoin := func() error { return a.Rejoin(t.Context(), 1, b.Address()) }
	require.NoError(t, rejoin())
	require.Nil(t, a.links[1].Load(), "it connects with nobody new")
	ended := func() *link {
		t.Helper()
		ep, err := b.Connect(t.Context(), 0, a.Address())
		require.NoError(t, err)
		require.NoError(t, b.Disconnect(ep))
		require.Eventually(t, func() bool {
			l := a.links[1].Load()
			return l != nil && l.ep.Incarnation == ep.Incarnation && l.forsaken()
		}, testPatience, time.Millisecond)
		return a.links[1].Load()
	}
	first := ended()
	require.NoError(t, a.Rejoin(t.Context(), 1, nil))
	require.Same(t, first, a.links[1].Load(), "nobody knows where the peer is")
	require.NoError(t, rejoin())
	next := a.links[1].Load()
	require.True(t, next.used())
	require.Greater(t, next.ep.Incarnation, first.ep.Incarnation)
	require.NoError(t, rejoin())
	require.Same(t, next, a.links[1].Load(), "it is up")
	ended()
	require.NoError(t, b.Close())
	require.ErrorIs(t, rejoin(), transport.ErrPeerGone)

	c := openRank(t, 1, 2, Config{}, transport.Config{})
	c.serves(t, a)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return !a.links[1].Load().alive.Load() }, testPatience, time.Millisecond)
	require.NoError(t, a.Rejoin(t.Context(), 1, c.Address()), "its end was told")
}
