package main

import (
	"context"
	"fmt"

	"gopgas/pgas"
)

// answer: where p sends i to p(i), the inverse sends p(i) to i. Each rank scatters the numbers of its own elements.
func answer(ctx context.Context, w *pgas.World) error {
	const n = 11
	p, err := pgas.NewArray[int](ctx, w.Team(), n, pgas.Block())
	if err != nil {
		return err
	}
	inverse, err := pgas.NewArray[int](ctx, w.Team(), n, pgas.Block())
	if err != nil {
		return err
	}
	if err := p.Apply(ctx, func(i, _ int) int { return 3 * i % n }); err != nil {
		return err
	}
	var numbers, to []int
	for i, x := range p.Mine() {
		numbers, to = append(numbers, i), append(to, *x)
	}
	if err := inverse.Scatter(numbers, to); err != nil {
		return err
	}
	if err := inverse.Fence(ctx); err != nil { // all have scattered
		return err
	}
	if w.Rank() == 0 {
		all := make([]int, n)
		if err := inverse.Get(0, all); err != nil {
			return err
		}
		fmt.Println(all)
	}
	if err := inverse.Free(ctx); err != nil {
		return err
	}
	return p.Free(ctx)
}
