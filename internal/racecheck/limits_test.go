package racecheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
)

func TestCellKeepsItsParts(t *testing.T) {
	for _, origin := range []int{0, 1, MaxRanks - 1} {
		for _, kind := range []Kind{Read, Write, Update, Look} {
			for _, done := range []Done{AtReturn, ByFlush, ByWait} {
				for _, site := range []Site{0, 1, siteSlots - 1} {
					c := newCell(1<<32-1, origin, Access{kind, done, site})
					require.NotZero(t, c)
					require.Equal(t, uint32(1<<32-1), c.epoch())
					require.Equal(t, origin, c.origin())
					require.Equal(t, kind, c.kind())
					require.Equal(t, site, c.site())
					require.Equal(t, done == ByFlush, c.later())
					require.Equal(t, done == ByWait, c.pending())
				}
			}
		}
	}
	require.LessOrEqual(t, siteSlots, 1<<siteBits)
}

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		a, b      Kind
		conflicts bool
	}{
		{Read, Read, false},
		{Read, Write, true},
		{Read, Update, true},
		{Write, Write, true},
		{Write, Update, true},
		{Update, Update, false},
		{Look, Look, false},
		{Look, Read, false},
		{Look, Update, false},
		{Look, Write, true},
	} {
		require.Equal(t, c.conflicts, c.a.conflicts(c.b), "%d %d", c.a, c.b)
		require.Equal(t, c.conflicts, c.b.conflicts(c.a), "%d %d", c.a, c.b)
	}
	// What covers another is in conflict with all that the other is in conflict with.
	kinds := []Kind{Read, Write, Update, Look}
	for _, a := range kinds {
		for _, b := range kinds {
			for _, x := range kinds {
				require.False(t, a.covers(b) && x.conflicts(b) && !x.conflicts(a), "%d covers %d, not for %d", a, b, x)
			}
		}
	}
}

// TestRowForgetsLast: a row has room for whatever is in no order in a world of up to five ranks; beyond it says that it
// forgets, unless it forgets what has been reported.
func TestRowForgetsLast(t *testing.T) {
	never, nothing := func(cell) bool { return false }, func(cell) {}
	for _, n := range []int{2, 3, 8, 9, 64} {
		cells := make([]cell, width(n))
		forgot := 0
		for origin := range n {
			for _, a := range []Access{{Kind: Read}, {Kind: Read, Done: ByWait}, {Kind: Look}} {
				a.Site = 1
				if enter(cells, newCell(1, origin, a), never, nothing) {
					forgot++
				}
			}
		}
		require.Equal(t, max(0, 3*n-width(n)), forgot, "%d ranks", n)
		hits := 0
		require.False(t, enter(cells, newCell(1, 0, Access{Kind: Write, Site: 2}), never, func(cell) { hits++ }))
		require.Equal(t, min(3*n, width(n)), hits)
		require.True(t, slices.ContainsFunc(cells, func(c cell) bool { return c.kind() == Write }), "it has taken the place of one")
	}
}

func TestSitesRunOut(t *testing.T) {
	c := newWorld(t, 2).join().checks[0]
	for i := range siteSlots + 50 {
		id := c.sites.name(fmt.Sprintf("put at f.go:%d", i))
		if i+1 < siteSlots {
			require.EqualValues(t, i+1, id)
			require.Equal(t, fmt.Sprintf("put at f.go:%d", i), c.siteOf(0, id))
		} else {
			require.Zero(t, id)
		}
	}
	require.Equal(t, noSite, c.siteOf(0, 0))
	require.EqualValues(t, 7, c.sites.name("put at f.go:6"), "known ones are still known")
	long := newWorld(t, 2).join().checks[1]
	id := long.sites.name(strings.Repeat("x", 500))
	require.Equal(t, strings.Repeat("x", siteSlotBytes-1), long.siteOf(1, id))
}

func TestSiteIsTheProgramsLine(t *testing.T) {
	c := newWorld(t, 2).join().checks[1]
	var ids [2]Site
	for i := range ids {
		ids[i] = c.Site("get")
	}
	require.Equal(t, ids[0], ids[1])
	require.Regexp(t, `^get at racecheck/limits_test\.go:\d+$`, c.siteOf(1, ids[0]))
	require.NotEqual(t, ids[0], c.Site("get"), "another line")
}

// TestSharedClocksAreTold: two things with one clock look ordered, and the check says so, once.
func TestSharedClocksAreTold(t *testing.T) {
	w := newWorld(t, 2)
	s := &Shelf{c: w.checks[0], at: shared(2, w.checks[0].ShelfBytes(1, 0)), clocks: 1}
	s.Release(1, 4, CarryDone)
	s.Release(1, 4, CarryDone)
	require.Empty(t, w.said)
	s.Release(1, 5, CarryDone)
	s.Release(1, 6, CarryDone)
	require.Len(t, w.said, 1)
	require.Contains(t, w.said[0], "share")
	c := w.checks[0]
	require.Equal(t, 7, c.Clocks(7))
	require.Equal(t, clockBudget/c.recordBytes(), c.Clocks(1<<30))
	require.Zero(t, (*Checker)(nil).Clocks(7))
}

// TestListOfRacesRunsOut: with a full list races are still counted and told.
func TestListOfRacesRunsOut(t *testing.T) {
	w := newWorld(t, 2).join()
	const many = keySlots + 20
	for i := range many {
		require.True(t, w.checks[0].first(fmt.Sprint("a", i), "b", "w"))
		require.False(t, w.checks[0].first("b", fmt.Sprint("a", i), "w"), "the same two, the other way round")
		if i < keySlots {
			require.False(t, w.checks[1].first(fmt.Sprint("a", i), "b", "w"), "by another rank")
		}
	}
	n, err := w.checks[1].Found()
	require.NoError(t, err)
	require.Equal(t, many, n)
}

// TestLockOfTheDead: who waits for a shelf that a dead rank has locked gives the check up and goes on.
func TestLockOfTheDead(t *testing.T) {
	w := newWorld(t, 2)
	require.True(t, w.signals[0].lock(1))
	w.checks[1].e.Peers.MarkGone(0, peers.Exited(1))
	w.signals[1].Release(1, 0, CarryAll)
	require.Len(t, w.said, 1)
	require.Contains(t, w.said[0], "rank 1 can check no further")
	w.windows[1].Touch(Access{}, 0, 0, 1)
	require.Zero(t, w.checks[1].Stats(), "nothing is checked any more")
}

// TestOneEndsForAll: who checks no further hands no clocks on. The others do not take what he has ordered for races.
func TestOneEndsForAll(t *testing.T) {
	w := newWorld(t, 3).join()
	touch := func(rank int, kind Kind, done Done) {
		w.windows[rank].Touch(Access{Kind: kind, Done: done, Site: w.checks[rank].Site("access")}, 2, 0, 1)
	}
	touch(0, Write, ByFlush)
	w.checks[0].Flushed(2)
	w.checks[0].e.Peers.MarkGone(2, peers.Exited(1)) // whose word cannot be written, and need not
	w.checks[0].give(errors.New("what went wrong"))
	for _, b := range w.boards {
		b.Enter()
	}
	for _, b := range w.boards {
		b.Leave()
	}
	touch(1, Read, AtReturn)
	require.Equal(t, []string{"race check: rank 0 can check no further, so no rank does: what went wrong"}, w.said)
	require.Zero(t, w.checks[1].Stats().Races)
}

func TestWorldsThatAreTooLarge(t *testing.T) {
	for n, ok := range map[int]bool{MaxRanks: true, MaxRanks + 1: false} {
		e := proto.New(proto.Config{Size: n, Sched: sched.Goroutine(1), Peers: peers.New(n), Nodes: make([]int, n)})
		_, err := New(e, nil)
		require.Equal(t, ok, err == nil, "%d ranks: %v", n, err)
	}
}
