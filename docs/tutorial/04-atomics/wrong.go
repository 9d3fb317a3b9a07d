package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
	"gopgas/window"
)

// wrong: a count by get and put. The barrier makes sure of what would otherwise happen now and then.
func wrong(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int](ctx, w.Team(), 1)
	if err != nil {
		return err
	}
	count := make([]int, 1)
	if err := win.Get(0, 0, count); err != nil {
		return err
	}
	if err := w.Barrier(ctx); err != nil { // all have read 0
		return err
	}
	count[0]++
	if err := win.Put(0, 0, count); err != nil {
		return err
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		fmt.Println(w.Size(), "ranks counted to", win.Local()[0])
	}
	return win.Free(ctx)
}
