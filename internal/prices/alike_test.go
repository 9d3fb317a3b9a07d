package prices

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/eager"
	"gopgas/internal/selector"
)

// TestAlike: of puts through slots one is asked about each time and the others travel like it, if they are like it in all that matters, as long as the
// run lasts; and each is noted as one before which, but for the last one, no flush came.
func TestAlike(t *testing.T) {
	const bytes = 16 * kib
	p := Published(testMachine())
	l := p.Learned(Far)
	var bounced, other selector.Trial
	for try := 0; !bounced.By(selector.Bounce) || !other.Wanted(); try++ {
		require.Less(t, try, 1000)
		var way selector.Protocol
		var trial selector.Trial
		way, trial = l.Choose(selector.Query{Bytes: bytes, Uses: 1}, p.Selector, true)
		require.True(t, trial.By(way))
		if way == selector.Bounce {
			bounced = trial
		} else {
			other = trial
		}
		l.Note(trial, 1)
	}
	require.False(t, other.By(selector.Bounce))
	require.False(t, selector.Trial{}.By(selector.None))
	for _, chooser := range []*eager.Chooser{nil, chooserOf(t)} {
		var h Habits
		alike := func(l *selector.Learned, rank int, site uint64, bytes int) bool {
			before := h.run
			way, yes := h.Alike(l, rank, site, bytes, false)
			require.Equal(t, yes, way == selector.Bounce)
			if yes { // it is one of the run, and was not timed
				require.Equal(t, bounced, before.trial)
				before.puts++
			}
			require.Equal(t, before, h.run)
			return yes
		}
		first := func(trial selector.Trial) {
			h.FlushFollows(5, bytes)
			h.Put(l, trial, 1, 0)
		}
		h.FlushFollows(5, bytes)
		require.False(t, alike(l, 1, 5, bytes), "nobody looks yet")
		h.Begin(chooser)
		require.False(t, alike(l, 1, 5, bytes), "it is the first of its run")
		first(other)
		require.False(t, alike(l, 1, 5, bytes), "that went another way")
		h.Other() // the flush says nothing of the call site
		h.Flush(1)

		first(bounced)
		require.False(t, alike(l, 2, 5, bytes), "another rank")
		require.False(t, alike(p.Learned(Node), 1, 5, bytes), "another kind of rank")
		require.False(t, alike(l, 1, 6, bytes), "another call site")
		require.False(t, alike(l, 1, 5, bytes+8), "another size")
		for range AskedOf - 1 {
			require.True(t, alike(l, 1, 5, bytes))
		}
		require.False(t, alike(l, 1, 5, bytes), "it is asked about again")
		first(bounced)
		require.True(t, alike(l, 1, 5, bytes))
		h.Other()
		h.Flush(1)
		require.False(t, alike(l, 1, 5, bytes), "the run is over")

		for range 50 { // two puts, and a flush behind the second only
			follows, _, _ := h.FlushFollows(5, bytes)
			require.False(t, follows, "what is like it counts as from the same call site")
			h.Put(l, bounced, 1, 0)
			require.True(t, alike(l, 1, 5, bytes))
			h.Flush(1)
		}
		for range 8 { // a flush behind each
			h.FlushFollows(5, bytes)
			h.Flush(1)
		}
		follows, _, _ := h.FlushFollows(5, bytes)
		require.True(t, follows)
		h.Put(l, bounced, 1, 0)
		require.False(t, alike(l, 1, 5, bytes), "who waits is asked")
		require.Zero(t, testing.AllocsPerRun(10, func() { h.Alike(l, 1, 5, bytes, true) }))
	}
}

// TestAlikeFromWhereItLies: puts of registered memory travel as those before them do that went from where they lay; what is not registered is asked about.
func TestAlikeFromWhereItLies(t *testing.T) {
	const bytes = 16 * kib
	p := Published(testMachine())
	l := p.Learned(Far)
	way, direct := l.Choose(selector.Query{Bytes: bytes, Waited: true, Covered: true}, p.Selector, true)
	require.Equal(t, selector.Direct, way)
	var h Habits
	h.Begin(nil)
	h.FlushFollows(5, bytes)
	h.Put(l, direct, 1, 0)
	_, yes := h.Alike(l, 1, 5, bytes, false)
	require.False(t, yes, "it would have to be registered")
	for range AskedOf - 1 {
		way, yes := h.Alike(l, 1, 5, bytes, true)
		require.True(t, yes)
		require.Equal(t, selector.Direct, way)
	}
	_, yes = h.Alike(l, 1, 5, bytes, true)
	require.False(t, yes, "it is asked about again")
	r := h.Flush(1)
	require.Equal(t, direct, r.trial)
	require.Equal(t, AskedOf, r.puts)
}

// TestRunOfAlikes: what a run costs is that of the puts that were timed, each for its like, and its part of the flush; who ends the run is asked about,
// and timed.
func TestRunOfAlikes(t *testing.T) {
	const bytes = 16 * kib
	p := Published(testMachine())
	l := p.Learned(Far)
	way, trial := l.Choose(selector.Query{Bytes: bytes, Waited: true, Covered: true}, p.Selector, true)
	require.True(t, trial.Short())
	put := func(h *Habits) (ended Run, asked bool) {
		if p, yes := h.Alike(l, 1, 5, bytes, true); yes {
			require.Equal(t, way, p)
			return ended, false
		}
		h.FlushFollows(5, bytes)
		return h.Put(l, trial, 1, 2*time.Second), true
	}
	var h Habits
	h.Begin(nil)
	for range 10 {
		put(&h)
	}
	r := h.Flush(1)
	require.Equal(t, 10, r.puts)
	require.Equal(t, 2, r.timed)
	require.InDelta(t, 2, r.each(), 1e-9)

	for i := range selector.ShortTrial {
		ended, asked := put(&h)
		last := i == selector.ShortTrial-1
		require.Equal(t, i%AskedOf == 0 || last, asked, "put %d", i)
		require.Equal(t, last, ended.puts == selector.ShortTrial, "put %d", i)
	}
}
