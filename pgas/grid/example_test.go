package grid_test

import (
	"context"
	"fmt"

	"gopgas/pgas"
	"gopgas/pgas/grid"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// A box of an array of three dimensions is got in one call, whoever owns its elements.
func ExampleArray() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		a, err := grid.New[int](ctx, w.Team(), []int{4, 4, 4}, grid.Config{})
		if err != nil {
			return err
		}
		for at, x := range a.Mine() {
			*x = 100*at[0] + 10*at[1] + at[2]
		}
		if err := a.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(a)
			got := make([]int, 8)
			if err := a.Get(grid.Box{Lo: []int{1, 1, 2}, Hi: []int{3, 3, 4}}, got); err != nil {
				return err
			}
			fmt.Println(got)
		}
		return a.Free(ctx)
	})
	// Output:
	// array of [4 4 4] int, in [2 2 1] blocks
	// [112 113 122 123 212 213 222 223]
}

// A box may take only some of the indices of a dimension.
func ExampleBox() {
	even := grid.Box{Lo: []int{0, 1}, Hi: []int{6, 9}, Step: []int{2, 4}}
	fmt.Println(even, even.Shape(), even.Len())
	// Output: [0:6:2 1:9:4] [3 2] 6
}

// Blocks of lengths of one's own, and a frame of ghost cells that shows what lies around the edges.
func ExampleConfig() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		a, err := grid.New[int](ctx, w.Team(), []int{2, 5}, grid.Config{
			Blocks: [][]int{nil, {3, 2}}, Ghost: []int{0, 1}, Periodic: []bool{false, true},
		})
		if err != nil {
			return err
		}
		if err := a.Apply(ctx, func(at []int, _ int) int { return 10*at[0] + at[1] }); err != nil {
			return err
		}
		if err := a.UpdateGhosts(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println(a.Block(1), a.Row(0), a.Row(1))
		}
		return a.Free(ctx)
	})
	// Output: [0:2 3:5] [2 3 4 0] [12 13 14 10]
}

// All ranks add to the same elements, around the edges of the array; each addition counts.
func ExampleAccumulatePeriodic() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		a, err := grid.New[float64](ctx, w.Team(), []int{3, 3}, grid.Config{})
		if err != nil {
			return err
		}
		corner := grid.Box{Lo: []int{-1, -1}, Hi: []int{1, 1}}
		if err := grid.AccumulatePeriodic(a, corner, []float64{1, 2, 3, 4}, pgsync.Sum); err != nil {
			return err
		}
		sum, err := pgas.Reduce(ctx, a, pgsync.Sum)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			all := make([]float64, 9)
			if err := a.Get(a.Whole(), all); err != nil {
				return err
			}
			fmt.Println(all, sum)
		}
		return a.Free(ctx)
	})
	// Output: [12 0 9 0 0 0 6 0 3] 30
}

// A part of one array is copied to another place of another one, which lies differently.
func ExampleArray_CopyBox() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		rows, err := grid.New[int](ctx, w.Team(), []int{2, 4}, grid.Config{Parts: []int{2, 1}})
		if err != nil {
			return err
		}
		cols, err := grid.New[int](ctx, w.Team(), []int{2, 4}, grid.Config{Parts: []int{1, 2}})
		if err != nil {
			return err
		}
		if err := rows.Apply(ctx, func(at []int, _ int) int { return 10*at[0] + at[1] + 1 }); err != nil {
			return err
		}
		err = cols.CopyBox(ctx, grid.Box{Lo: []int{0, 0}, Hi: []int{2, 3}}, rows, grid.Box{Lo: []int{0, 1}, Hi: []int{2, 4}})
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			part, _ := cols.Local()
			fmt.Println(part)
		}
		return cols.Free(ctx)
	})
	// Output: [4 0 14 0]
}
