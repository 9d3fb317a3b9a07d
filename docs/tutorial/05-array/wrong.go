package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
)

// wrong: two arrays that cannot be. The first one's elements hold pointers; of the second one rank 3 wants another length.
func wrong(ctx context.Context, w *pgas.World) error {
	_, err := pgas.NewArray[string](ctx, w.Team(), 10, pgas.Block())
	if w.Rank() == 0 {
		fmt.Println(err)
	}
	n := 10
	if w.Rank() == 3 {
		n = 11
	}
	_, err = pgas.NewArray[int](ctx, w.Team(), n, pgas.Block())
	return err
}
