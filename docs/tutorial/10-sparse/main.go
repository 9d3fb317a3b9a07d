// Command 10-sparse is a step of the tutorial: a sparse matrix whose rows are spread over the ranks.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
)

// ring returns this rank's share of the entries of a matrix of n by n: 2 on the diagonal, -1 beside it, around the
// corners too. Which rank owns them plays no part here: rank r makes every Size-th row, and the columns' neighbours.
func ring(w *pgas.World, n int) []Entry {
	var entries []Entry
	for i := w.Rank(); i < n; i += w.Size() {
		entries = append(entries, Entry{i, i, 2}, Entry{(i + 1) % n, i, -1}, Entry{(i + n - 1) % n, i, -1})
	}
	return entries
}

// lesson: the matrix times the squares 0, 1, 4, 9 … is -2 everywhere but at the two ends, where the ring closes.
func lesson(ctx context.Context, w *pgas.World) error {
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
	if err := x.Apply(ctx, func(i int, _ float64) float64 { return float64(i * i) }); err != nil {
		return err
	}
	if err := m.Times(ctx, y, x); err != nil {
		return err
	}
	fmt.Println("rank", w.Rank(), "fetches", m.need)
	if w.Rank() == 0 {
		all := make([]float64, n)
		if err := y.Get(0, all); err != nil {
			return err
		}
		fmt.Println(all)
	}
	if err := y.Free(ctx); err != nil {
		return err
	}
	return x.Free(ctx)
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
