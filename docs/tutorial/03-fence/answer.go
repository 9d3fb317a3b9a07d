package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
	"gopgas/window"
)

// answer: a fence before reading, so that all have written; and one before writing again, so that all have read.
func answer(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int](ctx, w.Team(), 1)
	if err != nil {
		return err
	}
	win.Local()[0] = w.Rank() + 1
	for range 2 {
		if err := win.Fence(ctx); err != nil { // all have written
			return err
		}
		sum, one := 0, make([]int, 1)
		for target := range w.Size() {
			if err := win.Get(target, 0, one); err != nil {
				return err
			}
			sum += one[0]
		}
		if err := win.Fence(ctx); err != nil { // all have read
			return err
		}
		fmt.Println("rank", w.Rank(), "finds the sum", sum)
		win.Local()[0] *= 10
	}
	return win.Free(ctx)
}
