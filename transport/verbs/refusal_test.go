package verbs

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/transport"
	"gopgas/transport/verbs/internal/side"
)

func TestRefusal(t *testing.T) {
	require.NoError(t, refusal(side.WordAccept))
	require.ErrorIs(t, refusal(side.WordInstance), transport.ErrPeerGone)
	require.ErrorIs(t, refusal(side.WordYield), errYield)
	require.ErrorIs(t, refusal(side.WordReady), side.ErrFrame)
	require.ErrorContains(t, refusal(side.WordJob), "another job")
	require.False(t, errors.Is(goneIfCut(side.ErrSecret), transport.ErrPeerGone), "a wrong secret is no death")
	require.ErrorIs(t, goneIfCut(net.ErrClosed), transport.ErrPeerGone)
}
