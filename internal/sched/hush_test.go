package sched

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/invariants"
)

// told is a NIC that writes down what it is told.
type told []Polling

func (h *told) Hush(how Polling) { *h = append(*h, how) }

// TestHushes: a wait tells that it polls without a pause when it begins to, and that it does so no longer when it pauses, or ends.
func TestHushes(t *testing.T) {
	s := Process(1)
	wait := func(steps int) (h told) {
		sp := s.Begin(t.Context(), What{Op: "test"}, nil)
		sp.Hushes(&h)
		for range steps {
			require.NoError(t, sp.Step())
			require.False(t, sp.Slept() && len(h) == 1, "it pauses")
		}
		sp.End()
		return h
	}
	require.Empty(t, wait(0))
	for _, steps := range []int{1, 5, s.spins, s.spins + 3} {
		got := wait(steps)
		for began := time.Now(); invariants.Enabled && got == nil && time.Since(began) < time.Minute; { // where they are checked a wait pauses early at times
			got = wait(steps)
		}
		want := told{Steadily, NoMore}
		if steps > s.spins || invariants.Enabled && got[len(got)-1] == Seldom {
			want[1] = Seldom
		}
		require.Equal(t, want, got, "%d steps: once each", steps)
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
