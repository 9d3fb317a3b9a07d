package selector

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSure: it is sure of all that somebody waits for; of puts that nobody waits for where by no other way they return earlier, nor come near with their
// part of the flush, by the costs at any size up to the next power of two; of none that is still to be registered.
func TestSure(t *testing.T) {
	s := slowCopies().Selector(0)
	for n := 1 << sureLeast; n < 1<<40; n += n / 3 {
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
				require.Greater(t, s.Lasting(p, q), 0.9*sureMore*s.Lasting(Direct, q), "%+v by %v", q, p)
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
	m := cluster() // copies return earlier than the wire is done: what a run of them takes is seen, and not known beforehand
	m.Model.Net = 1e9
	m.Slotted.Put = 10 / m.Model.Net
	require.Greater(t, m.Selector(0).Lasting(Bounce, Query{Bytes: 256 << 10, Covered: true}), 2*m.Selector(0).Lasting(Direct, Query{Bytes: 256 << 10, Covered: true}))
	require.False(t, m.Selector(0).Surely(Query{}).Has(256<<10))
	m = cluster()
	m.Model.Copy = func(float64) float64 { return 1e15 } // copies are free, and go beside
	require.Zero(t, m.Selector(0).Surely(Query{})&(1<<16-1), "nothing is sure where nothing differs")
}

// TestSureByWhatWasLearned: what was believed to be close turns out to be far off, and it is sure; what has been sure is so no longer when transfers
// take longer, nor is what is near, or was seen too seldom.
func TestSureByWhatWasLearned(t *testing.T) {
	s := cluster().Selector(0)
	for _, q := range []Query{{Bytes: 1 << 20, Get: true, Waited: true}, {Bytes: 1 << 20, Waited: true}, {Bytes: 1 << 20}} {
		q.Covered = true
		var l Learned
		spend := func(n int, direct, others float64) {
			for range n {
				p, trial := l.Choose(q, s, true)
				seconds := others
				if p == Direct {
					seconds = direct
				}
				l.Note(trial, seconds)
			}
		}
		spend(trials-1, 1e-4, 3e-4)
		require.False(t, l.Sure(q), "it was seen too seldom")
		spend(200, 1e-4, 3e-4)
		require.True(t, l.Sure(q))
		other := q
		other.Bytes *= 2
		require.False(t, l.Sure(other), "of another size nothing is known")
		other = q
		other.Covered = false
		l.Choose(other, s, true)
		require.True(t, l.Sure(q), "what is still to be registered says nothing of what is")
		spend(3000, 1e-3, 3e-4)
		require.False(t, l.Sure(q), "it takes longer now")

		l = Learned{}
		spend(2000, 1e-4, 1.2e-4)
		require.False(t, l.Sure(q), "another way is near")
	}
}
