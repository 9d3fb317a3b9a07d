package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// answer: each rank puts its square into an element of its own and adds 1 to the signal; rank 0 waits until all have.
func answer(ctx context.Context, w *pgas.World) error {
	list, err := window.Allocate[int](ctx, w.Team(), w.Size())
	if err != nil {
		return err
	}
	signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
	if err != nil {
		return err
	}
	come := signals.Signal(0)
	if err := list.PutSignalAdd(0, w.Rank(), []int{w.Rank() * w.Rank()}, come, 1); err != nil {
		return err
	}
	if w.Rank() == 0 {
		if _, err := come.WaitUntil(ctx, pgsync.Equal, uint64(w.Size())); err != nil {
			return err
		}
		fmt.Println("rank 0 has", list.Local())
	}
	if err := signals.Free(ctx); err != nil {
		return err
	}
	return list.Free(ctx)
}
