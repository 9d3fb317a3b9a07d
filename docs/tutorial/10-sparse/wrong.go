package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
)

// wrong: an entry of a row that the matrix does not have. Owner panics, as an index out of a slice does.
func wrong(ctx context.Context, w *pgas.World) (err error) {
	defer func() {
		if r := recover(); r != nil && w.Rank() == 0 {
			fmt.Println("panic:", r)
		}
	}()
	_, err = NewSparse(ctx, w.Team(), 12, []Entry{{Row: 12}})
	return err
}
