package nic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/am"
	"gopgas/transport/transporttest"
)

// laidBehind has rank 0 put a word, whose connection breaks, and another one behind it when the first is under way again. The connection breaks breaks times more.
func laidBehind(t *testing.T, breaks int) *world {
	w, b := newBrittle(t, 2, transporttest.FabricConfig{})
	n := w.n[0]
	w.put(t, 1, 0, 1)
	require.NoError(t, n.Flush(t.Context(), 1))
	b.cut(t, breaks, nil)
	w.put(t, 1, 0, 2)
	e := n.ends[1]
	require.Eventually(t, func() bool { return n.Progress() && e.state.Load() != epUp }, patient, 10*time.Microsecond)
	require.Eventually(t, func() bool { return e.state.Load() == epUp }, patient, 10*time.Microsecond)
	w.put(t, 1, 8, 3)
	return w
}

// TestNothingFollowsWhatIsGivenUp (N4): a put that has met too many breaks is not given up as long as something goes behind it that has met fewer. That may be a flag, which tells
// its target that the put is there.
func TestNothingFollowsWhatIsGivenUp(t *testing.T) {
	w := laidBehind(t, am.MostTries)
	err := w.n[0].Flush(t.Context(), 1)
	require.EqualValues(t, 3, w.mem[1].Word64(8).Load())
	require.EqualValues(t, 2, w.mem[1].Word64(0).Load(), "what was put before")
	require.NoError(t, err)
}

// TestGivenUpTogether (N4): where that has met too many, too, both are given up.
func TestGivenUpTogether(t *testing.T) {
	w := laidBehind(t, am.MostTries+1)
	n := w.n[0]
	require.ErrorIs(t, n.Flush(t.Context(), 1), ErrConnectionLost)
	require.EqualValues(t, 1, w.mem[1].Word64(0).Load())
	require.Zero(t, w.mem[1].Word64(8).Load())
	w.put(t, 1, 0, 4)
	require.NoError(t, n.Flush(t.Context(), 1))
	require.EqualValues(t, 4, w.mem[1].Word64(0).Load())
	require.True(t, n.Idle())
}
