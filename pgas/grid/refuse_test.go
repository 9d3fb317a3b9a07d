package grid_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/grid"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestNewFailsEverywhere: what one member alone asks for, or all cannot have, is an error on all of them at once, and the team stays whole.
func TestNewFailsEverywhere(t *testing.T) {
	pgastest.Each(t, []int{1, 4}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		odd := w.Rank() == w.Size()-1
		for k, wrong := range []struct {
			shape []int
			c     grid.Config
		}{
			{[]int{4, -1}, grid.Config{}},
			{[]int{4, 4}, grid.Config{Ghost: []int{1}}},
			{[]int{4, 4}, grid.Config{Parts: []int{w.Size() + 1, 1}}},
			{[]int{4, 0}, grid.Config{Blocks: [][]int{nil, {}}}}, // no block, of no elements
		} {
			if !odd {
				wrong.shape, wrong.c = []int{4, 4}, grid.Config{}
			}
			_, err := grid.New[int64](ctx, w.Team(), wrong.shape, wrong.c)
			require.Error(t, err)
			if odd {
				require.ErrorIs(t, err, []error{pgas.ErrRange, pgas.ErrConfig, pgas.ErrConfig, pgas.ErrConfig}[k])
			} else {
				require.ErrorIs(t, err, pgsync.ErrMismatch)
				require.ErrorContains(t, err, fmt.Sprintf("rank %d nothing, since its arguments cannot be", w.Size()-1))
			}
		}
		if w.Size() > 1 {
			shape := []int{4, 4}
			if odd {
				shape = []int{4, 5}
			}
			_, err := grid.New[int64](ctx, w.Team(), shape, grid.Config{})
			require.ErrorIs(t, err, pgsync.ErrMismatch)
			require.ErrorContains(t, err, "an array of [4 4] in")
			require.ErrorContains(t, err, "an array of [4 5] in")
		}
		_, err := grid.New[*int](ctx, w.Team(), []int{4, 4}, grid.Config{})
		require.ErrorContains(t, err, "holds a pointer")
		_, err = grid.New[struct{ s []int }](ctx, w.Team(), []int{4}, grid.Config{})
		require.ErrorContains(t, err, "holds a pointer")
		return w.Team().Barrier(ctx)
	})
}

// TestRefusedBeforeAnythingMoves: a call with a box or an index that is not there changes nothing (N3), and a copy of which one member knows better hangs nobody.
func TestRefusedBeforeAnythingMoves(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		a, err := grid.New[int64](ctx, w.Team(), []int{4, 6, 3}, grid.Config{})
		if err != nil {
			return err
		}
		if err := a.Fill(ctx, 5); err != nil {
			return err
		}
		out, buf := grid.Box{Lo: []int{0, 0, 0}, Hi: []int{4, 7, 3}}, make([]int64, 4*7*3)
		for i := range buf {
			buf[i] = 1
		}
		_, nb := a.PutNB(out, buf)
		_, gnb := a.GetNB(out, buf)
		_, at := a.At(4, 0, 0)
		_, few := a.At(1, 1)
		_, add := grid.FetchAdd(a, 1, 0, 6, 0)
		_, addNB := grid.FetchAddNB(a, 1, new(int64), 0, 6, 0)
		_, swap := grid.Swap(a, 1, 0, 0, 3)
		_, cas := grid.CompareSwap(a, 5, 1, -1, 0, 0)
		for k, err := range []error{
			a.Put(out, buf), a.Get(out, buf), nb, gnb, at, few, add, addNB, swap, cas, a.Set(1, 0, 0, -1), a.Put(a.Whole(), buf), a.Get(a.Whole(), buf[:1]),
			a.PutPeriodic(a.Whole(), buf), a.GetPeriodic(a.Whole(), buf), grid.Accumulate(a, out, buf, pgsync.Sum),
			grid.AccumulatePeriodic(a, a.Whole(), buf, pgsync.Sum), a.Gather(buf, nil), a.Gather(buf[:1], [][]int{{0, 0, 3}}), a.Scatter(buf[:2], [][]int{{0, 0, 0}, {0, 0}}),
			grid.ScatterAccumulate(a, [][]int{{0, 0, 0}, {4, 0, 0}}, buf[:2], pgsync.Sum),
		} {
			require.ErrorIs(t, err, pgas.ErrRange, "call %d", k)
		}
		require.ErrorIs(t, grid.Accumulate(a, a.Whole(), buf[:72], pgsync.Op(99)), window.ErrType)
		require.Panics(t, func() { a.Block(w.Size()) })
		require.Panics(t, func() { a.Block(-w.Size()) })
		require.Panics(t, func() { a.Owner(4, 0, 0) })
		require.Panics(t, func() { a.Row(0) })
		require.Panics(t, func() { a.Row(-1, 0) })
		require.Panics(t, func() { a.Row(4, 0) })
		if err := a.Fence(ctx); err != nil {
			return err
		}
		for at, x := range a.Mine() {
			require.EqualValues(t, 5, *x, "%v", at)
		}
		return nil
	})
}

// TestNoElementsOfMany: an array, or a box, that has no elements since one dimension has none is as legal where the others together would be too long, in whatever order.
func TestNoElementsOfMany(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const long = 1 << 24
		for _, shape := range [][]int{{0, long, long}, {long, 0, long}, {long, long, 0}} {
			a, err := grid.New[int8](ctx, w.Team(), shape, grid.Config{})
			if err != nil {
				return err
			}
			if err := errors.Join(a.Get(a.Whole(), nil), a.Put(a.Whole(), nil), a.Fill(ctx, 1), a.UpdateGhosts(ctx), a.Free(ctx)); err != nil {
				return err
			}
			if a, err = grid.New[int8](ctx, w.Team(), []int{4, 6, 3}, grid.Config{}); err != nil {
				return err
			}
			around := grid.Box{Lo: []int{0, 0, 0}, Hi: shape}
			require.NoError(t, a.GetPeriodic(around, nil))
			around.Hi = []int{long, long, 1}
			require.ErrorIs(t, a.GetPeriodic(around, nil), pgas.ErrRange)
			if err := a.Free(ctx); err != nil {
				return err
			}
		}
		_, err := grid.New[int8](ctx, w.Team(), []int{1, long, long, long}, grid.Config{})
		require.ErrorIs(t, err, pgas.ErrRange)
		return nil
	})
}

// TestCopyOfOneMember: where one member copies what cannot be, the others' copies are errors too, and nobody waits for ever.
func TestCopyOfOneMember(t *testing.T) {
	pgastest.Each(t, []int{1, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, err := w.Team().Split(ctx, 0, w.Rank()) // it is of no use afterwards
		if err != nil {
			return err
		}
		var a [2]*grid.Array[int64]
		for k := range a {
			if a[k], err = grid.New[int64](ctx, team, []int{4, 6}, grid.Config{}); err != nil {
				return err
			}
		}
		to := a[0].Whole()
		if w.Rank() == 0 {
			to.Hi[1]++
		}
		err = a[0].CopyBox(ctx, to, a[1], a[1].Whole())
		require.Error(t, err)
		if w.Rank() == 0 {
			require.ErrorIs(t, err, pgas.ErrRange)
		}
		return nil
	})
}

// TestEnds: a Mine or Owned that is broken off ends there, and after Free there is nothing left.
func TestEnds(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		a, err := grid.New[int64](ctx, w.Team(), []int{4, 6}, grid.Config{Ghost: []int{0, 1}})
		if err != nil {
			return err
		}
		require.Equal(t, "array of [4 6] int64, in [1 2] blocks with ghost cells of width [0 1]", a.String())
		for range a.Mine() {
			break
		}
		for row := range a.Owned() {
			require.Len(t, row, 3)
			break
		}
		if err := a.Free(ctx); err != nil {
			return err
		}
		left, _ := a.Local()
		require.Empty(t, left)
		_, err = a.At(0, 0)
		require.ErrorIs(t, err, pgas.ErrClosed)
		return nil
	})
}
