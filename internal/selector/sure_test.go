package selector

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSure: it is sure of all that somebody waits for; of puts that nobody waits for where by no other way they return earlier, by the costs at any size
// up to the next power of two; of none that is still to be registered.
func TestSure(t *testing.T) {
	s := slowCopies().Selector(0)
	for n := 1; n < 1<<40; n += 1 + n/3 {
		require.True(t, s.Surely(Query{Get: true}).Has(n))
		require.True(t, s.Surely(Query{Waited: true}).Has(n))
	}
	sure, q := s.Surely(Query{}), Query{Covered: true}
	seen := 0
	for q.Bytes = 1 << sureLeast; q.Bytes < 1<<sureMost; q.Bytes += q.Bytes / 3 {
		if !sure.Has(q.Bytes) {
			continue
		}
		seen++
		for p := Inline; p < Protocols; p++ {
			if p != Direct {
				require.Greater(t, s.Cost(p, q), 0.9*s.Cost(Direct, q), "%+v by %v", q, p)
			}
		}
	}
	require.Positive(t, seen)
	require.False(t, sure.Has(1<<30), "that was not looked at")
	require.False(t, sure.Has(1))
	require.False(t, sure.Has(0))
	for k := range 62 {
		require.True(t, Sure(1<<k).Has(1<<k))
		require.True(t, Sure(1<<k).Has(2<<k-1))
		require.False(t, Sure(1<<k).Has(2<<k))
	}
	require.False(t, Sure(1<<63-1).Has(0))
	m := cluster()
	m.Model.Copy = func(float64) float64 { return 1e15 } // copies are free, and go beside
	require.Zero(t, m.Selector(0).Surely(Query{})&(1<<16-1), "nothing is sure where nobody would wait for another way")
}
