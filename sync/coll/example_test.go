package coll_test

import (
	"context"
	"fmt"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/sync/coll"
)

// Each rank has some lines; where do its lines begin in a file of all of them?
func ExampleExScan() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		first := []int{0} // stays on rank 0
		if err := coll.ExScan(ctx, w.Team(), first, []int{10 + w.Rank()}, pgsync.Sum); err != nil {
			return err
		}
		all := make([]int, w.Size())
		if err := coll.Gather(ctx, w.Team(), all, first, 0); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [0 10 21 33]
}

// Rank i has row i of a matrix, and gets column i.
func ExampleAllToAll() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		row := []int{10*w.Rank() + 0, 10*w.Rank() + 1, 10*w.Rank() + 2}
		column := make([]int, w.Size())
		err := coll.AllToAll(ctx, w.Team(), column, row)
		if w.Rank() == 1 {
			fmt.Println(column)
		}
		return err
	})
	// Output: [1 11 21]
}

// Ranks have lists of different lengths; rank 0 gets them behind each other.
func ExampleGatherV() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		mine := make([]int, w.Rank())
		for i := range mine {
			mine[i] = 10*w.Rank() + i
		}
		counts := []int{0, 1, 2}
		all := make([]int, 3)
		err := coll.GatherV(ctx, w.Team(), all, counts, mine, 0)
		if w.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [10 20 21]
}
