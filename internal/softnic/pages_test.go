package softnic

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPagesAgainstModel counts registrations page by page and compares.
func TestPagesAgainstModel(t *testing.T) {
	const room = 60
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var p pages
		var model [room]int
		var held []span
		for range 300 {
			delta, s := 1, span{}
			if len(held) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(held))
				s, delta = held[i], -1
				held = append(held[:i], held[i+1:]...)
			} else {
				s.from = uint64(rng.IntN(room - 1))
				s.to = s.from + 1 + uint64(rng.IntN(min(12, room-int(s.from)-1)+1))
				s.to = min(s.to, room)
				held = append(held, s)
			}
			var want [room]bool
			for i := s.from; i < s.to; i++ {
				want[i] = model[i] == 0 || model[i]+delta == 0
				model[i] += delta
			}
			var got [room]bool
			for _, e := range p.change(s.from, s.to, delta) {
				require.Less(t, e.from, e.to)
				for i := e.from; i < e.to; i++ {
					require.False(t, got[i], "a page twice")
					got[i] = true
				}
			}
			require.Equal(t, want, got, "seed %d", seed)
			p.requireCounts(t, model[:])
		}
		for _, s := range held {
			p.change(s.from, s.to, -1)
		}
		require.Empty(t, p.runs)
		require.Zero(t, p.locked)
	}
}

func (p *pages) requireCounts(t *testing.T, model []int) {
	t.Helper()
	got, locked := make([]int, len(model)), uint64(0)
	for i, r := range p.runs {
		require.Less(t, r.from, r.to)
		if i > 0 {
			before := p.runs[i-1]
			require.LessOrEqual(t, before.to, r.from)
			require.False(t, before.to == r.from && before.count == r.count, "runs %v and %v are one", before, r)
		}
		for k := r.from; k < r.to; k++ {
			got[k] = r.count
			locked++
		}
	}
	require.Equal(t, model, got)
	require.Equal(t, locked, p.locked)
}
