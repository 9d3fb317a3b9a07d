package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
)

// wrong: there is no element 52. The error tells which element was asked for.
func wrong(ctx context.Context, w *pgas.World) error {
	deck, err := pgas.NewArray[int](ctx, w.Team(), 52, pgas.Cyclic())
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		fmt.Println(deck.Gather(make([]int, 3), []int{51, 52, 0}))
	}
	return deck.Free(ctx)
}
