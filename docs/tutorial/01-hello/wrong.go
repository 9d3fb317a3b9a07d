package main

import (
	"context"
	"errors"

	"gopgas/pgas"
)

// wrong: one rank gives up while the others wait for it.
func wrong(ctx context.Context, w *pgas.World) error {
	if w.Rank() == 2 {
		return errors.New("my input is empty")
	}
	return w.Barrier(ctx)
}
