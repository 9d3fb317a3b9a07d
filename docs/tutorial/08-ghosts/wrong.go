package main

import (
	"context"

	"gopgas/pgas"
)

// wrong: three rows of blocks for however many ranks there are.
func wrong(ctx context.Context, w *pgas.World) error {
	_, err := pgas.NewMatrix[float64](ctx, w.Team(), 6, 8, pgas.Grid{Rows: 3, Ghost: 1})
	return err
}
