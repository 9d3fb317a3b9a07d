package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
)

// answer: each rank gets what belongs into its own part of b: the elements of a at the other end, backwards.
func answer(ctx context.Context, w *pgas.World) error {
	a, err := pgas.NewArray[int](ctx, w.Team(), 10, pgas.Block())
	if err != nil {
		return err
	}
	b, err := pgas.NewArray[int](ctx, w.Team(), 10, pgas.Block())
	if err != nil {
		return err
	}
	if err := a.Apply(ctx, func(i, _ int) int { return i * i }); err != nil { // with a fence before and after
		return err
	}
	lo, _ := b.Range(w.Rank())
	if err := a.GetStrided(a.Len()-1-lo, -1, b.Local()); err != nil {
		return err
	}
	if err := b.Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		for x, err := range b.All(ctx, 0, b.Len()) { // fetches ahead
			if err != nil {
				return err
			}
			fmt.Print(x, " ")
		}
		fmt.Println()
	}
	if err := b.Free(ctx); err != nil {
		return err
	}
	return a.Free(ctx)
}
