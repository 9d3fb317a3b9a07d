// Command 05-array is a step of the tutorial: one array, spread over the ranks.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
)

// lesson: each rank fills the elements that it owns; rank 0 reads them all.
func lesson(ctx context.Context, w *pgas.World) error {
	a, err := pgas.NewArray[int](ctx, w.Team(), 10, pgas.Block())
	if err != nil {
		return err
	}
	lo, hi := a.Range(w.Rank())
	fmt.Printf("rank %d owns [%d, %d)\n", w.Rank(), lo, hi)
	for i, x := range a.Mine() { // index in the whole array, pointer to the element
		*x = i * i
	}
	if err := a.Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		all := make([]int, a.Len())
		if err := a.Get(0, all); err != nil { // from four ranks, in one call
			return err
		}
		fmt.Println(all)
	}
	return a.Free(ctx)
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
