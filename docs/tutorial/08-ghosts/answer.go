package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
)

// answer: Conway's life on a torus. A glider of an 8 by 8 torus is back where it was after 32 generations.
func answer(ctx context.Context, w *pgas.World) error {
	const side = 8
	around := pgas.Grid{Ghost: 1, PeriodicRows: true, PeriodicCols: true}
	var field [2]*pgas.Matrix[int8]
	for k := range field {
		var err error
		if field[k], err = pgas.NewMatrix[int8](ctx, w.Team(), side, side, around); err != nil {
			return err
		}
	}
	if w.Rank() == 0 {
		for _, at := range [][2]int{{0, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}} {
			if err := field[0].Set(at[0], at[1], 1); err != nil {
				return err
			}
		}
	}
	mine := field[0].Block(w.Rank())
	for step := range 32 {
		now, next := field[step%2], field[(step+1)%2]
		if err := now.UpdateGhosts(ctx); err != nil { // a fence first: the glider is there
			return err
		}
		for i := range mine.Rows {
			above, row, below, out := now.Row(i-1), now.Row(i), now.Row(i+1), next.Row(i)
			for j := 1; j <= mine.Cols; j++ {
				around := above[j-1] + above[j] + above[j+1] + row[j-1] + row[j+1] + below[j-1] + below[j] + below[j+1]
				out[j] = 0
				if around == 3 || around == 2 && row[j] == 1 {
					out[j] = 1
				}
			}
		}
	}
	if err := field[0].Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		all := make([]int8, 4*side)
		if err := field[0].Get(pgas.Area{Rows: 4, Cols: side}, all); err != nil {
			return err
		}
		for i := range 4 {
			fmt.Println(all[i*side : (i+1)*side])
		}
	}
	if err := field[1].Free(ctx); err != nil {
		return err
	}
	return field[0].Free(ctx)
}
