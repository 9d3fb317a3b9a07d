package foresight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/firehose"
)

func TestWorth(t *testing.T) {
	for _, c := range []struct {
		name  string
		told  Seen
		rate  float64
		costs Costs
		want  bool
	}{
		{"what a miss costs is not known", Seen{1000, 0, 1000}, 1, Costs{}, true},
		{"all are saved", Seen{1000, 1000, 0}, 1, Costs{Miss: 20_000}, true},
		{"none is", Seen{1000, 0, 1000}, 1, Costs{Miss: 20_000}, false},
		{"one move a round keeps the rest", Seen{1000, 6, 0}, 1, Costs{Miss: 20_000}, true},
		{"everything fits, and nothing was asked for", Seen{1000, 0, 0}, 1, Costs{Miss: 20_000}, false},
		{"25 of 1000 at 20 us are 500 ns each, not 650", Seen{1000, 25, 575}, 0.6, Costs{Miss: 20_000}, false},
		{"but what costs 500", Seen{1000, 25, 575}, 0.6, Costs{Miss: 20_000, Tell: 500}, true},
		{"33 are enough", Seen{1000, 25, 567}, 0.6, Costs{Miss: 20_000}, true},
		{"cheap misses want more of them", Seen{1000, 25, 567}, 0.6, Costs{Miss: 5000}, false},
		{"a miss costs less than to be told", Seen{1000, 1000, 0}, 1, Costs{Miss: 600}, false},
		{"more misses than without", Seen{1000, 100, 700}, 0.6, Costs{Miss: 20_000}, false},
	} {
		require.Equal(t, c.want, Worth(c.told, c.rate, c.costs), c.name)
	}
	large := Back(firehose.Costs{RoundTrip: 5000, Register: 1000, RegisterByte: 0.05}, 1<<20)
	require.InDelta(t, 11_000+0.05*(1<<20), large, 1e-6)
	require.Equal(t, 64, Trial(0))
	require.Equal(t, 4000, Trial(1000))
}

// uses has a site use buckets, with an outcome where the uses before were told, and returns how many were told. Others miss.
func uses(tab *Table, hash uint64, n int, told Outcome) (count int) {
	was := false
	for range n {
		o := Missed
		if was {
			o = told
		}
		was = tab.Tell(hash, o, Costs{Miss: 20_000})
		if was {
			count++
		}
	}
	return count
}

// TestSites: a site whose uses come as predicted is told of always, one whose uses never do once in seventeen in the end, and one that
// changes is noticed.
func TestSites(t *testing.T) {
	const places, trial, short = 100, 400, 300
	regular, random := uint64(1)<<60, uint64(2)<<60
	tab := New(2)
	for i := range places {
		b := firehose.MakeBucket(1, 0, uint64(i))
		require.EqualValues(t, i, tab.Number(Target{1, firehose.Range{ID: 1}, b}))
	}
	require.Equal(t, 50*trial, uses(tab, regular, leastTrial+50*trial, Saved), "all but before the first trial")
	require.Equal(t, short, uses(tab, random, leastTrial+short, Missed), "the first trial")
	require.Zero(t, uses(tab, random, short, Missed), "then it rests")
	require.Equal(t, short, uses(tab, random, short, Missed))
	require.Zero(t, uses(tab, random, 2*short, Missed), "twice as long")
	uses(tab, random, (1+4+1+8+1+16)*short, Missed)
	require.Equal(t, 10*short, uses(tab, random, 170*short, Missed), "and never longer than sixteen trials")
	require.Equal(t, trial, uses(tab, regular, trial, Saved), "another site's matter")
	require.Equal(t, 100*trial, uses(tab, random, 100*trial, Saved), "it has become regular just when it was tried")
	require.Equal(t, short, uses(tab, random, short, Missed))
	require.Zero(t, uses(tab, random, short, Missed))
	require.Equal(t, short, uses(tab, random, short, Missed), "a short rest again")
	s := tab.Stats()
	require.EqualValues(t, (50+1+100)*trial+(1+1+3+10+1+1)*short, s.Told)
	require.EqualValues(t, (50+1+100)*trial+(1+1+1+2+31+170+3)*short+2*leastTrial, s.Told+s.Untold)
	require.True(t, tab.Tell(3<<60, Held, Costs{}), "W2")
}

// TestTargets: numbers stand for targets until there are too many; uses in a row on one bucket are one.
func TestTargets(t *testing.T) {
	tab := New(3)
	at := func(rank, i int) Target {
		return Target{rank, firehose.Range{ID: 7, Bytes: 1 << 40}, firehose.MakeBucket(7, 0, uint64(i))}
	}
	for i := range MostTargets {
		require.EqualValues(t, i, tab.Number(at(i%2, i)))
	}
	require.EqualValues(t, 5, tab.Number(at(1, 5)))
	to, ok := tab.Find(5)
	require.True(t, ok)
	require.Equal(t, at(1, 5), to)
	require.EqualValues(t, MostTargets, tab.Number(at(2, 0)), "W1")
	_, ok = tab.Find(5)
	require.False(t, ok)
	_, ok = tab.Find(MostTargets + 1)
	require.False(t, ok)
	require.EqualValues(t, MostTargets+1, tab.Number(at(1, 5)))

	b := at(0, 0).Bucket
	require.False(t, tab.Again(1, b))
	require.True(t, tab.Again(1, b))
	require.False(t, tab.Again(2, b))
	require.False(t, tab.Again(1, b+1))
	require.False(t, tab.Again(1, b))
}

// TestTellAllocatesNothing is what a hit pays: no allocation for a known bucket.
func TestTellAllocatesNothing(t *testing.T) {
	tab := New(2)
	to := Target{1, firehose.Range{ID: 7, Bytes: 1 << 40}, firehose.MakeBucket(7, 0, 3)}
	tab.Number(to)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if tab.Tell(3<<60, Saved, Costs{}) {
			tab.Number(to)
		}
	}))
}
