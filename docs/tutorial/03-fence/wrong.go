package main

import (
	"context"
	"time"

	"gopgas/pgas"
	"gopgas/window"
)

// wrong: rank 3 has nothing to write and does something else, while all the others wait in the fence.
func wrong(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int](ctx, w.Team(), 2)
	if err != nil {
		return err
	}
	if w.Rank() == 3 {
		time.Sleep(time.Hour)
	}
	if err := win.Put(3, 0, []int{7}); err != nil {
		return err
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	return win.Free(ctx)
}
