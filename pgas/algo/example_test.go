package algo_test

import (
	"cmp"
	"context"
	"fmt"

	"gopgas/pgas"
	"gopgas/pgas/algo"
	"gopgas/pgas/pgastest"
)

// An array is sorted by all members at once, in whatever layout.
func ExampleSort() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[int](ctx, w.Team(), 8, pgas.Cyclic())
		if err != nil {
			return err
		}
		if err := a.Apply(ctx, func(i, _ int) int { return i * 5 % 8 }); err != nil {
			return err
		}
		if err := algo.Sort(ctx, a); err != nil {
			return err
		}
		if w.Rank() == 0 {
			all := make([]int, a.Len())
			if err := a.Get(0, all); err != nil {
				return err
			}
			fmt.Println(all)
		}
		return a.Free(ctx)
	})
	// Output: [0 1 2 3 4 5 6 7]
}

// Elements of any type are sorted by a function of the program's.
func ExampleSortFunc() {
	type city struct {
		name   [8]byte
		people int
	}
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[city](ctx, w.Team(), 4, pgas.Block())
		if err != nil {
			return err
		}
		for i, c := range a.Mine() {
			c.people = (i*3 + 1) % 4 * 1000
			copy(c.name[:], fmt.Sprintf("city %d", i))
		}
		if err := algo.SortFunc(ctx, a, func(x, y city) int { return cmp.Compare(y.people, x.people) }); err != nil {
			return err
		}
		if w.Rank() == 1 {
			largest, err := a.At(0)
			if err != nil {
				return err
			}
			fmt.Printf("%.6s, %d\n", largest.name, largest.people)
		}
		return a.Free(ctx)
	})
	// Output: city 2, 3000
}
