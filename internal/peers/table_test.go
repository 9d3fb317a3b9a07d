package peers

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// family returns the tables of n ranks that map each other's rank blocks.
func family(n int) []*Table {
	blocks := make([]mem.Range, n)
	for r := range blocks {
		blocks[r] = mem.Of(make([]uint64, BlockBytes(n)/8))
	}
	all := make([]*Table, n)
	for r := range all {
		all[r] = New(n)
		all[r].Join(sched.Goroutine(n), blocks[r], func(rank int) mem.Range { return blocks[rank] })
		all[r].Announce()
	}
	return all
}

func TestDeathIsKnownToAll(t *testing.T) {
	all := family(5)
	for _, e := range all {
		require.False(t, e.AnyGone())
		r, err := e.CheckAny([]int{0, 1, 2, 3, 4})
		require.NoError(t, err)
		require.Equal(t, -1, r)
	}
	require.True(t, all[1].MarkGone(3, Signalled(9)))
	require.False(t, all[1].MarkGone(3, Vanished), "no news")
	for _, e := range all {
		require.ErrorIs(t, e.Check(3), transport.ErrPeerGone)
		require.EqualError(t, e.Check(3), "peer is gone: rank 3 was killed by signal 9", "the first cause stays")
		require.NoError(t, e.Check(2))
		require.ErrorIs(t, e.Watch(3).Interrupted(), transport.ErrPeerGone)
		require.NoError(t, e.Watch(0).Interrupted())
		r, err := e.CheckAny([]int{0, 3, 4})
		require.Equal(t, 3, r)
		require.Error(t, err)
		_, err = e.CheckAny([]int{0, 4})
		require.NoError(t, err)
	}
}

func TestFirstOfManyDeaths(t *testing.T) {
	all := family(6)
	for _, r := range []int{4, 2, 0, 5} {
		all[(r+1)%6].MarkGone(r, Exited(r))
	}
	for _, e := range all {
		for _, c := range []struct {
			of   []int
			want int
		}{{[]int{0, 1, 2, 3, 4, 5}, 4}, {[]int{2, 4}, 4}, {[]int{1, 2}, 2}, {[]int{1, 3}, -1}} {
			r, _ := e.CheckAny(c.of)
			require.Equal(t, c.want, r, "of %v", c.of)
		}
	}
}

// TestDeathBeforeJoin: what a rank has learned before its block is in shared memory is not lost.
func TestDeathBeforeJoin(t *testing.T) {
	e := New(3)
	require.True(t, e.MarkGone(2, Returned))
	block := mem.Of(make([]uint64, BlockBytes(3)/8))
	blocks := []mem.Range{block, {}, {}}
	e.Join(sched.Goroutine(3), block, func(rank int) mem.Range { return blocks[rank] })
	require.ErrorContains(t, e.Check(2), "rank 2 returned without closing its world")
	_, ok := e.StateOf(1)
	require.False(t, ok, "not mapped")
}

func TestStatesAndStories(t *testing.T) {
	all := family(2)
	s, ok := all[0].StateOf(1)
	require.True(t, ok)
	require.Equal(t, Up, s)
	all[1].Leave()
	s, _ = all[0].StateOf(1)
	require.Equal(t, Left, s)
	require.True(t, all[0].Tell(1, "exited with 3 after 0.2 s"))
	require.ErrorContains(t, all[0].Check(1), "rank 1 exited with 3 after 0.2 s")
	first, how := all[0].FirstLost()
	require.Equal(t, 1, first)
	require.Equal(t, Exited(3), how, "of what tells a code the code is known")
	for story, want := range map[string]Cause{"was killed by SIGTERM": Silent, "exited with 0 without leaving the job": Silent, "exited with 143": Exited(143)} {
		one := family(2)[0]
		first, how = one.FirstLost()
		require.Equal(t, -1, first)
		require.Zero(t, how)
		require.True(t, one.MarkGone(1, Silent))
		require.False(t, one.Tell(1, story))
		_, how = one.FirstLost()
		require.Equal(t, want, how, story)
	}
	for c, want := range map[Cause]string{
		Exited(7): "exited with code 7", Signalled(11): "was killed by signal 11", Silent: "does not answer",
		Vanished: "ended without closing its world", Exited(0): "exited with code 0",
	} {
		require.Equal(t, want, c.String())
		require.NotZero(t, c)
	}
}

func TestManyReportOneDeath(t *testing.T) {
	all := family(8)
	var wg sync.WaitGroup
	for r, e := range all {
		wg.Go(func() { e.MarkGone(5, Exited(r)) })
	}
	wg.Wait()
	for _, e := range all {
		require.Error(t, e.Check(5))
	}
}

// TestRankBlockKeepsWritersApart: what different ranks write lies on different cache lines.
func TestRankBlockKeepsWritersApart(t *testing.T) {
	offsets := []int{blockState, TurnOff, blockBell, FirstOff, PostOff, blockGone}
	for i := 1; i < len(offsets); i++ {
		require.GreaterOrEqual(t, offsets[i]-offsets[i-1], 64)
	}
	require.Equal(t, blockGone+8*17, BlockBytes(17))
}

// TestParted: what was known stays known when the table leaves shared memory, and nobody is rung or told any more.
func TestParted(t *testing.T) {
	all := family(3)
	all[0].MarkGone(2, Silent)
	all[1].Part()
	require.ErrorContains(t, all[1].Check(2), "rank 2 does not answer")
	_, ok := all[1].StateOf(0)
	require.False(t, ok)
	all[1].Ring(0)
	require.True(t, all[1].MarkGone(0, Vanished))
	require.NoError(t, all[2].Check(0))
	require.EqualValues(t, 2+1, all[1].First())
	require.Equal(t, Vanished, all[1].Cause(0))
}

// TestEndedWhileParting: a NIC's goroutine may ask who has ended until the NIC is closed, which is after the table's last look at what is
// shared.
func TestEndedWhileParting(t *testing.T) {
	for range 100 {
		all := family(3)
		all[0].MarkGone(2, Silent)
		all[1].Leave()
		require.True(t, all[0].Ended(1))
		var wg sync.WaitGroup
		begun := make(chan struct{})
		wg.Go(func() {
			for i := range 100 {
				if i == 1 {
					close(begun)
				}
				all[0].Ended(1)
				all[0].StateOf(1)
				if !all[0].Ended(2) || all[0].Ended(0) {
					t.Error("what is known of a death changes as the table parts")
				}
			}
		})
		<-begun
		all[0].Part()
		wg.Wait()
		require.False(t, all[0].Ended(1), "nobody can tell any more")
		require.True(t, all[0].Ended(2))
	}
}
