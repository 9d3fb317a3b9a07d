package pgas

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/bootstrap"
)

func TestCardHoldsWhatWasPutIn(t *testing.T) {
	h := bootstrap.Host{Name: "node17", BootID: "b", PID: 4711}
	c := newCard("settings", h, []int{3, 300})
	require.NoError(t, c.check())
	require.Equal(t, "settings", string(c.field(cardConfig)))
	require.Equal(t, h.Node(), string(c.field(cardNode)))
	require.Equal(t, "node17", c.host())
	require.Equal(t, 4711, c.pid())
	require.Equal(t, []byte{3, 0, 44, 1}, c.field(cardCores))
}

func TestCardRefusesWhatIsNone(t *testing.T) {
	good := newCard("settings", bootstrap.Host{Name: "n"}, []int{1})
	for n := range good {
		require.ErrorIs(t, good[:n].check(), errRankCard, "the first %d bytes", n)
	}
	require.ErrorIs(t, append(good, 0).check(), errRankCard)
}
