package main

import (
	"context"

	"gopgas/pgas"
	"gopgas/window"
)

// wrong: the last of four elements does not fit into a part of three.
func wrong(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int](ctx, w.Team(), 3)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		return win.Put(1, 0, []int{1, 2, 3, 4})
	}
	return win.Fence(ctx)
}
