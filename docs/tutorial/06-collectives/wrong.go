package main

import (
	"context"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// wrong: rank 3 brings two numbers where the others bring one.
func wrong(ctx context.Context, w *pgas.World) error {
	sum := make([]float64, 1)
	if w.Rank() == 3 {
		sum = make([]float64, 2)
	}
	return pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum)
}
