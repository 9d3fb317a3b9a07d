package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// answer: even and odd ranks are teams of their own, which add up without each other.
func answer(ctx context.Context, w *pgas.World) error {
	half, err := w.Team().Split(ctx, w.Rank()%2, w.Rank())
	if err != nil {
		return err
	}
	sum := []int{w.Rank()}
	if err := pgsync.AllReduce(ctx, half, sum, sum, pgsync.Sum); err != nil {
		return err
	}
	fmt.Printf("rank %d is %d of %d in its team, whose ranks add up to %d\n", w.Rank(), half.Rank(), half.Size(), sum[0])
	return half.Free(ctx)
}
