package main

import (
	"context"

	"gopgas/pgas"
	"gopgas/window"
)

// wrong: rank 3 has nothing to write and leaves before the fence, for which all the others wait.
func wrong(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int](ctx, w.Team(), 2)
	if err != nil {
		return err
	}
	if w.Rank() == 3 {
		return nil
	}
	if err := win.Put(3, 0, []int{7}); err != nil {
		return err
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	return win.Free(ctx)
}
