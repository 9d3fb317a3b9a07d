package sched

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMovedBeginsAnew: a wait that was about to sleep yields again when something has happened.
func TestMovedBeginsAnew(t *testing.T) {
	s := Process(1)
	yielded := 0
	s.yield = func() { yielded++ }
	sp := s.Begin(context.Background(), What{Op: "test", Peer: -1}, nil)
	defer sp.End()
	sp.Moved() // of a wait that is not slow yet: nothing
	require.False(t, sp.Slept())
	s.spins = 0
	for !sp.armed {
		require.NoError(t, sp.Step())
	}
	began := sp.began
	before := yielded
	s.yields, s.early = time.Hour, 0 // so that neither a busy machine nor the build that checks invariants leaves the phase
	sp.Moved()
	require.False(t, sp.armed)
	for range 5 {
		require.NoError(t, sp.Step())
	}
	require.Equal(t, before+5, yielded)
	require.Equal(t, began, sp.began, "it is one wait still")
	require.True(t, sp.Slept())
}
