package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
)

// answer: the neighbours in a ring; one step back is Size-1 steps forward, which keeps the remainder positive.
func answer(ctx context.Context, w *pgas.World) error {
	me, n := w.Rank(), w.Size()
	fmt.Printf("rank %d: left %d, right %d\n", me, (me+n-1)%n, (me+1)%n)
	return w.Barrier(ctx)
}
