package proto

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// family returns the engines of n ranks that map each other's rank blocks.
func family(n int) []*Engine {
	blocks := make([]mem.Range, n)
	for r := range blocks {
		blocks[r] = mem.Of(make([]uint64, RankBlockBytes(n)/8))
	}
	all := make([]*Engine, n)
	for r := range all {
		all[r] = &Engine{Rank: r, Size: n, Sched: sched.Goroutine(n), Peers: NewPeers(n)}
		remotes := make([]Remote, n)
		for q := range remotes {
			remotes[q] = Remote{Rank: q, Bytes: blocks[q].Bytes, Mapped: blocks[q]}
		}
		all[r].Join(blocks[r], remotes)
	}
	return all
}

func TestDeathIsKnownToAll(t *testing.T) {
	all := family(5)
	for _, e := range all {
		require.False(t, e.Peers.AnyGone())
		r, err := e.Peers.CheckAny([]int{0, 1, 2, 3, 4})
		require.NoError(t, err)
		require.Equal(t, -1, r)
	}
	require.True(t, all[1].Peers.MarkGone(3, Signalled(9)))
	require.False(t, all[1].Peers.MarkGone(3, Vanished), "no news")
	for _, e := range all {
		require.ErrorIs(t, e.Peers.Check(3), transport.ErrPeerGone)
		require.EqualError(t, e.Peers.Check(3), "peer is gone: rank 3 was killed by signal 9", "the first cause stays")
		require.NoError(t, e.Peers.Check(2))
		require.ErrorIs(t, e.Peers.Watch(3).Interrupted(), transport.ErrPeerGone)
		require.NoError(t, e.Peers.Watch(0).Interrupted())
		r, err := e.Peers.CheckAny([]int{0, 3, 4})
		require.Equal(t, 3, r)
		require.Error(t, err)
		_, err = e.Peers.CheckAny([]int{0, 4})
		require.NoError(t, err)
	}
}

func TestFirstOfManyDeaths(t *testing.T) {
	all := family(6)
	for _, r := range []int{4, 2, 0, 5} {
		all[(r+1)%6].Peers.MarkGone(r, Exited(r))
	}
	for _, e := range all {
		for _, c := range []struct {
			of   []int
			want int
		}{{[]int{0, 1, 2, 3, 4, 5}, 4}, {[]int{2, 4}, 4}, {[]int{1, 2}, 2}, {[]int{1, 3}, -1}} {
			r, _ := e.Peers.CheckAny(c.of)
			require.Equal(t, c.want, r, "of %v", c.of)
		}
	}
}

// TestDeathBeforeJoin: what a rank has learned before its block is in shared memory is not lost.
func TestDeathBeforeJoin(t *testing.T) {
	e := &Engine{Rank: 0, Size: 3, Sched: sched.Goroutine(3), Peers: NewPeers(3)}
	require.True(t, e.Peers.MarkGone(2, Returned))
	block := mem.Of(make([]uint64, RankBlockBytes(3)/8))
	e.Join(block, []Remote{{Rank: 0, Bytes: block.Bytes, Mapped: block}, {Rank: 1}, {Rank: 2}})
	require.ErrorContains(t, e.Peers.Check(2), "rank 2 returned without closing its world")
	_, ok := e.Peers.StateOf(1)
	require.False(t, ok, "not mapped")
}

func TestStatesAndStories(t *testing.T) {
	all := family(2)
	s, ok := all[0].Peers.StateOf(1)
	require.True(t, ok)
	require.Equal(t, Up, s)
	all[1].Peers.Leave()
	s, _ = all[0].Peers.StateOf(1)
	require.Equal(t, Left, s)
	require.True(t, all[0].Peers.Tell(1, "exited with 3 after 0.2 s"))
	require.ErrorContains(t, all[0].Peers.Check(1), "rank 1 exited with 3 after 0.2 s")
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
		wg.Go(func() { e.Peers.MarkGone(5, Exited(r)) })
	}
	wg.Wait()
	for _, e := range all {
		require.Error(t, e.Peers.Check(5))
	}
}

// TestRankBlockKeepsWritersApart: what different ranks write lies on different cache lines.
func TestRankBlockKeepsWritersApart(t *testing.T) {
	offsets := []int{blockState, blockBell, blockAny, blockGone}
	for i := 1; i < len(offsets); i++ {
		require.GreaterOrEqual(t, offsets[i]-offsets[i-1], 64)
	}
	require.Equal(t, blockGone+8*17, RankBlockBytes(17))
}
