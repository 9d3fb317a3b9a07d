package tcp

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/wire"
	"gopgas/transport"
)

// TestMet: a connection that a peer has called for, and has not spoken over, is nobody's endpoint yet: the peer may end without a word, and nobody would be told. Who connects
// waits for the first word, and calls himself where it does not come.
func TestMet(t *testing.T) {
	a := openRank(t, 0, 2, Config{}, transport.Config{})
	nowhere, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	to := address{rank: 1, instance: 77, places: []netip.AddrPort{netip.MustParseAddrPort(nowhere.Addr().String())}}
	require.NoError(t, nowhere.Close())

	s := knock(t, a).enter() // which has the instance 77
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = a.Connect(ctx, 1, to.append(nil))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, s.Close())
	_, err = a.Connect(t.Context(), 1, to.append(nil))
	require.ErrorIs(t, err, transport.ErrPeerGone)

	s = knock(t, a)
	require.Equal(t, wire.Accepted, s.hello().Verdict)
	s.prove(wire.Proof{Last: 1 << 21, Window: 64})
	require.Equal(t, wire.Accepted, s.welcome().Verdict)
	s.send(frame(wire.Header{Kind: wire.Alive}))
	ep, err := a.Connect(t.Context(), 1, to.append(nil))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	c := a.await(t, func(transport.Completion) bool { return true })
	require.Equal(t, transport.Completion{EP: ep, Kind: transport.OpPeerDown, Status: transport.StatusPeerGone}, c)
}
