package pgsync_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// uses checks that a team is whole: its ranks, a reduction, and a window in its heap.
func uses(ctx context.Context, t *testing.T, w *pgas.World, team *pgas.Team, ranks []int) error {
	require.Equal(t, len(ranks), team.Size())
	require.Equal(t, slices.Index(ranks, w.Rank()), team.Rank())
	for m, r := range ranks {
		require.Equal(t, r, team.WorldRank(m))
		got, ok := team.Member(r)
		require.True(t, ok)
		require.Equal(t, m, got)
	}
	_, ok := team.Member(w.Size())
	require.False(t, ok)
	src, dst := []int{w.Rank()}, make([]int, len(ranks))
	if err := pgsync.AllGather(ctx, team, dst, src); err != nil {
		return err
	}
	require.Equal(t, ranks, dst)
	win, err := window.Allocate[int](ctx, team, 3)
	if err != nil {
		return err
	}
	next := (team.Rank() + 1) % team.Size()
	if err := errors.Join(win.Put(next, 1, src), win.Fence(ctx)); err != nil {
		return err
	}
	require.Equal(t, ranks[(team.Rank()+team.Size()-1)%team.Size()], win.Local()[1])
	return win.Free(ctx)
}

func TestSplit(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, by := range []struct {
			color, key func(r int) int
		}{
			{func(r int) int { return r % 2 }, func(r int) int { return r }},
			{func(r int) int { return r % 3 }, func(r int) int { return -r }},
			{func(r int) int { return 1 << 40 }, func(r int) int { return 7 }},     // equal keys: by rank
			{func(r int) int { return r }, func(r int) int { return 0 }},           // alone
			{func(r int) int { return r%2*10 - 1 }, func(r int) int { return -r }}, // some of them in none
			{func(r int) int { return -1 - r }, func(r int) int { return 0 }},      // all of them in none
		} {
			var ranks []int
			for r := range w.Size() {
				if by.color(r) == by.color(w.Rank()) {
					ranks = append(ranks, r)
				}
			}
			slices.SortStableFunc(ranks, func(a, b int) int { return by.key(a) - by.key(b) })
			team, err := w.Team().Split(ctx, by.color(w.Rank()), by.key(w.Rank()))
			if err != nil {
				return err
			}
			if by.color(w.Rank()) < 0 {
				require.Nil(t, team)
				continue
			}
			if err := uses(ctx, t, w, team, ranks); err != nil {
				return err
			}
			// Nested: the halves of the team, by the team's own ranks.
			half, err := team.Split(ctx, team.Rank()*2/team.Size(), 0)
			if err != nil {
				return err
			}
			var inHalf []int
			for m, r := range ranks {
				if m*2/len(ranks) == team.Rank()*2/len(ranks) {
					inHalf = append(inHalf, r)
				}
			}
			if err := uses(ctx, t, w, half, inHalf); err != nil {
				return err
			}
			if err := errors.Join(half.Free(ctx), team.Barrier(ctx), team.Free(ctx)); err != nil {
				return err
			}
			require.ErrorIs(t, team.Barrier(ctx), pgas.ErrClosed)
			require.ErrorIs(t, team.Free(ctx), pgas.ErrClosed)
			require.ErrorIs(t, pgsync.Broadcast(ctx, team, []int{1}, 0), pgas.ErrClosed)
		}
		node, err := w.NodeTeam(ctx)
		if err != nil {
			return err
		}
		mates := 0
		mine, _ := w.Node(w.Rank())
		for r := range w.Size() {
			if n, _ := w.Node(r); n == mine {
				mates++
			}
		}
		require.Equal(t, mates, node.Size())
		return node.Free(ctx)
	}, 1, 2, 3, 4, 7)
}

// TestManySplits: teams that come and go leave nothing behind.
func TestManySplits(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		reserved, used := w.HeapUsage()
		for i := range 30 {
			team, err := w.Team().Split(ctx, (w.Rank()+i)%2, i)
			if err != nil {
				return err
			}
			if err := team.Free(ctx); err != nil {
				return err
			}
		}
		r, u := w.HeapUsage()
		require.Equal(t, []int{reserved, used}, []int{r, u})
		return nil
	}, 3)
}

// TestSplitBeyondALimit: the first memory of a team takes as many exchanges of the old one where its NIC has no room for it, so those who are in no team, or in
// another one, keep in step.
func TestSplitBeyondALimit(t *testing.T) {
	for name, color := range map[string]func(r int) int{
		"some in none": func(r int) int { return r%2 - 1 },
		"in two":       func(r int) int { return r / 3 },
	} {
		t.Run(name, func(t *testing.T) {
			c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 4 << 20, Untold: true}, TimeLimit: 30 * time.Second}
			pgastest.RunConfig(t, 4, c, func(ctx context.Context, w *pgas.World) error {
				for range 20 {
					team, err := w.Team().Split(ctx, color(w.Rank()), w.Rank())
					if err != nil {
						return err
					}
					if team != nil {
						if err := team.Barrier(ctx); err != nil {
							return err
						}
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
