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

// TestRefusedWhileClosing: who connects and fails while the domain is closed does not ask a device that is closed too.
func TestRefusedWhileClosing(t *testing.T) {
	d := &domain{} // without a device
	d.closed.Store(true)
	require.False(t, d.mayPass(0, errors.New("refused")))
	require.True(t, d.mayPass(0, errFull), "what needs no device is known all the same")
}
