package main

import (
	"context"
	"fmt"
	"math"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// answer: the power method. What the matrix stretches most grows fastest; how much it grows is the largest eigenvalue.
func answer(ctx context.Context, w *pgas.World) error {
	const n = 12
	m, err := NewSparse(ctx, w.Team(), n, ring(w, n))
	if err != nil {
		return err
	}
	x, err := pgas.NewArray[float64](ctx, w.Team(), n, pgas.Block())
	if err != nil {
		return err
	}
	y, err := pgas.NewArray[float64](ctx, w.Team(), n, pgas.Block())
	if err != nil {
		return err
	}
	if err := x.Set(0, 1); err != nil { // every rank does, with the same value
		return err
	}
	length := []float64{0}
	for range 100 {
		if err := m.Times(ctx, y, x); err != nil {
			return err
		}
		length[0] = 0
		for _, v := range y.Local() {
			length[0] += v * v
		}
		if err := pgsync.AllReduce(ctx, w.Team(), length, length, pgsync.Sum); err != nil {
			return err
		}
		length[0] = math.Sqrt(length[0])
		for i := range y.Local() {
			y.Local()[i] /= length[0]
		}
		x, y = y, x
	}
	if w.Rank() == 0 {
		fmt.Printf("the largest eigenvalue is %.6f\n", length[0])
	}
	if err := y.Free(ctx); err != nil {
		return err
	}
	return x.Free(ctx)
}
