package sched

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/invariants"
)

// told is a NIC that writes down what it is told.
type told []Polling

func (h *told) Hush(how Polling) { *h = append(*h, how) }

// TestHushes: a wait tells that it polls without a pause when it begins to, and that it does so no longer when it sleeps, or ends, or has yielded to somebody.
func TestHushes(t *testing.T) {
	s := Process(1)
	yields := time.Duration(0)
	s.yield = func() { time.Sleep(yields) }
	wait := func(steps int) (h told) {
		sp := s.Begin(t.Context(), What{Op: "test"}, nil)
		sp.Hushes(&h)
		for k := 0; k < steps && !sp.armed; k++ {
			require.NoError(t, sp.Step())
			require.False(t, sp.armed && len(h) == 1, "it sleeps next")
		}
		sp.End()
		return h
	}
	require.Empty(t, wait(0))
	ends := told{Steadily, NoMore}
	for _, steps := range []int{1, 5, s.spins, s.spins + 3} { // the last of which yield, and nobody takes that
		require.Eventually(t, func() bool { return slices.Equal(wait(steps), ends) }, time.Minute, time.Microsecond, "%d steps: once each", steps)
		require.True(t, steps > s.spins || invariants.Enabled || slices.Equal(wait(steps), ends), "%d steps", steps) // where they are checked a wait pauses early at times
	}
	if !invariants.Enabled {
		require.Equal(t, told{Steadily, Seldom}, wait(1<<30), "until it sleeps")
		yields = yieldLong + time.Microsecond
		require.Equal(t, told{Steadily, Seldom}, wait(s.spins+1), "somebody has had the processor")
		yields = 0
	}
	for _, s := range []*Sched{Process(1 << 20), Goroutine(1)} {
		var h told
		sp := s.Begin(t.Context(), What{Op: "test"}, nil)
		sp.Hushes(&h)
		for range 50 {
			require.NoError(t, sp.Step())
		}
		sp.End()
		require.Empty(t, h, "it pauses from the first")
	}
	sp := s.Begin(t.Context(), What{Op: "test"}, nil)
	sp.Hushes(nil)
	for range 5 {
		require.NoError(t, sp.Step())
	}
	sp.End()
}
