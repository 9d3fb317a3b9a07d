package selector

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSure: it is sure of a size that no other way comes near, by the costs at any size up to the next power of two; of none that is still to be
// registered; and for puts that nobody waits for already where the others are no faster for their caller.
func TestSure(t *testing.T) {
	s := slowCopies().Selector(0)
	for _, q := range []Query{{Get: true}, {Waited: true}, {}} {
		sure := s.Surely(q)
		more := sureMore
		if !q.Get && !q.Waited {
			more = 1
		}
		q.Covered = true
		seen := 0
		for q.Bytes = 1 << sureLeast; q.Bytes < 1<<sureMost; q.Bytes += q.Bytes / 3 {
			if !sure.Has(q.Bytes) {
				continue
			}
			seen++
			for p := Inline; p < Protocols; p++ {
				if p != Direct {
					require.Greater(t, s.Cost(p, q), 0.9*more*s.Cost(Direct, q), "%+v by %v", q, p)
				}
			}
		}
		require.Positive(t, seen, "%+v", q)
		require.False(t, sure.Has(1<<30), "that was not looked at")
		require.False(t, sure.Has(1))
		require.False(t, sure.Has(0))
	}
	for k := range 62 {
		require.True(t, Sure(1<<k).Has(1<<k))
		require.True(t, Sure(1<<k).Has(2<<k-1))
		require.False(t, Sure(1<<k).Has(2<<k))
	}
	require.False(t, Sure(1<<63-1).Has(0))
	m := cluster()
	m.Model.Copy = func(float64) float64 { return 1e15 } // copies are free, and go beside
	require.Zero(t, m.Selector(0).Surely(Query{Waited: true})&(1<<16-1), "nothing is sure where nothing differs")
}
