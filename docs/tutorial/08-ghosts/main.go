// Command 08-ghosts is a step of the tutorial: a grid whose cells depend on their neighbours.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
)

// lesson: a plate with a hot upper edge. In each step every cell becomes the mean of its four neighbours.
func lesson(ctx context.Context, w *pgas.World) error {
	const rows, cols, steps = 6, 8, 200
	var plate [2]*pgas.Matrix[float64] // now and next
	for k := range plate {
		var err error
		if plate[k], err = pgas.NewMatrix[float64](ctx, w.Team(), rows, cols, pgas.Grid{Ghost: 1}); err != nil {
			return err
		}
		mine := plate[k].Block(w.Rank())
		if mine.Row == 0 && mine.Rows > 0 { // the frame above the first row is nobody else's: it stays as it is
			for j := range plate[k].Row(-1) {
				plate[k].Row(-1)[j] = 100
			}
		}
	}
	mine := plate[0].Block(w.Rank())
	for step := range steps {
		now, next := plate[step%2], plate[(step+1)%2]
		if err := now.UpdateGhosts(ctx); err != nil { // my frame has the neighbours' newest values
			return err
		}
		for i := range mine.Rows {
			above, row, below, out := now.Row(i-1), now.Row(i), now.Row(i+1), next.Row(i)
			for j := 1; j <= mine.Cols; j++ { // element 0 is the frame's
				out[j] = (above[j] + row[j-1] + row[j+1] + below[j]) / 4
			}
		}
	}
	if err := plate[0].Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		all := make([]float64, rows*cols)
		if err := plate[0].Get(pgas.Area{Rows: rows, Cols: cols}, all); err != nil {
			return err
		}
		for i := range rows {
			fmt.Printf("%4.0f\n", all[i*cols:(i+1)*cols])
		}
	}
	if err := plate[1].Free(ctx); err != nil {
		return err
	}
	return plate[0].Free(ctx)
}

func main() {
	pgas.Main(func(ctx context.Context, w *pgas.World) error {
		switch strings.Join(os.Args[1:], " ") {
		case "wrong":
			return wrong(ctx, w)
		case "answer":
			return answer(ctx, w)
		}
		return lesson(ctx, w)
	})
}
