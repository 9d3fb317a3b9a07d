package main

import (
	"context"
	"fmt"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// TestTimes compares the product with one made without ranks, in worlds of one to five ranks.
func TestTimes(t *testing.T) {
	const n = 7
	want := make([]float64, n) // of the ring with 1, 2, 4, 8 …
	for i := range want {
		want[i] = 2*float64(int(1)<<i) - float64(int(1)<<((i+1)%n)) - float64(int(1)<<((i+n-1)%n))
	}
	for ranks := 1; ranks <= 5; ranks++ {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			pgastest.Run(t, ranks, func(ctx context.Context, w *pgas.World) error {
				m, err := NewSparse(ctx, w.Team(), n, ring(w, n))
				if err != nil {
					return err
				}
				x, err := pgas.NewArray[float64](ctx, w.Team(), n, pgas.Block())
				if err != nil {
					return err
				}
				if err := x.Apply(ctx, func(i int, _ float64) float64 { return float64(int(1) << i) }); err != nil {
					return err
				}
				y, err := pgas.NewArray[float64](ctx, w.Team(), n, pgas.Block())
				if err != nil {
					return err
				}
				if err := m.Times(ctx, y, x); err != nil {
					return err
				}
				for i, got := range y.Mine() {
					if *got != want[i] {
						t.Errorf("row %d: %v, wanted %v", i, *got, want[i])
					}
				}
				return nil
			})
		})
	}
}
