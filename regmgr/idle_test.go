package regmgr

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOldestIsExact: uses between two evictions do not touch the list, and still the least recently used one goes.
func TestOldestIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var l idleList
	live := map[*Region]bool{}
	tick := uint64(0)
	for range 3000 {
		switch tick++; rng.IntN(4) {
		case 0:
			r := fakeRegion(tick, 1, 0)
			r.word.Store(r.word.Load()&^tickMask | tick)
			l.add(r)
			live[r] = true
		case 1, 2:
			for r := range live { // any
				r.word.Store(r.word.Load()&^tickMask | tick)
				if rng.IntN(5) == 0 {
					r.ref()
				} else if r.references() > 0 {
					r.unref(tick)
				}
				break
			}
		case 3:
			var want *Region
			for r := range live {
				if r.references() == 0 && (want == nil || r.used() < want.used()) {
					want = r
				}
			}
			got := l.oldest(nil, always)
			require.Equal(t, want == nil, got == nil)
			if got != nil {
				require.Equal(t, want.used(), got.used())
				require.Equal(t, leaving, got.state())
				delete(live, got)
			}
			require.Len(t, l.heap, len(live))
		}
		for i, r := range l.heap {
			require.Equal(t, i, r.place)
		}
	}
}

func TestLatestPredictedGoesFirst(t *testing.T) {
	var l idleList
	at := func(tick uint64, expected int64) *Region {
		r := fakeRegion(tick, 1, 0)
		r.word.Store(r.word.Load()&^tickMask | tick)
		r.expected.Store(expected)
		l.add(r)
		return r
	}
	soon, late, never, used := at(1, 100), at(2, 900), at(3, 0), at(4, 5000)
	used.ref()
	require.Same(t, late, l.latest(nil))
	require.Same(t, soon, l.latest(nil))
	require.Nil(t, l.latest(nil))
	require.Same(t, never, l.oldest(nil, always))
	require.Nil(t, l.oldest(nil, always))
}

func TestBudget(t *testing.T) {
	var now time.Duration
	b := NewBudget(100, 3, func() time.Duration { return now })
	require.Equal(t, granted, b.take(60, 1))
	now += 10
	require.Equal(t, fullOwn, b.take(41, 1), "bytes")
	require.Equal(t, granted, b.take(40, 1))
	require.Equal(t, granted, b.take(0, 1))
	require.Equal(t, fullOwn, b.take(0, 1), "regions")
	require.Zero(t, b.Usage().PeakBytes, "nothing is registered yet")
	b.stand(60, 1)
	b.withdraw(40, 1) // somebody else was faster
	require.Equal(t, [2]int64{60, 60}, [2]int64{b.Usage().Bytes, b.Usage().PeakBytes})
	require.Equal(t, granted, b.take(40, 1))
	b.stand(40, 1)
	b.stand(0, 1)
	now += 30
	b.give(90, 2)
	now += 60
	u := b.Usage()
	require.Equal(t, Usage{Bytes: 10, PeakBytes: 100, AverageBytes: (60*10 + 100*30 + 10*60) / 100.0, Regions: 1, PeakRegions: 3}, u)
	require.True(t, b.lend(50, 1))
	now += 100
	lent := b.Usage()
	require.Equal(t, [2]int64{60, 50}, [2]int64{lent.Bytes, lent.Lent})
	require.Equal(t, [2]int{2, 3}, [2]int{lent.Regions, lent.PeakRegions})
	require.Equal(t, int64(100), lent.PeakBytes)
	require.Equal(t, (60*10+100*30+10*160)/200.0, lent.AverageBytes, "without what is lent")
	b.unlend(50, 1)
	require.True(t, b.holds(100, 3))
	require.False(t, b.holds(101, 1))
	require.False(t, b.holds(1, 4))
	b.SetLimits(5, 0)
	require.Equal(t, fullOwn, b.take(1, 1), "what is charged stays so, above a limit that was lowered")
	require.Equal(t, int64(10), b.Usage().Bytes)
	b.SetLimits(0, 0)
	require.Equal(t, granted, b.take(1<<50, 1<<20))
}
