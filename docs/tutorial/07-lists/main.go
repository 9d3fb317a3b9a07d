// Command 07-lists is a step of the tutorial: many scattered elements in one call.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
)

// lesson: the elements of a hand of cards lie on all ranks; one call fetches them.
func lesson(ctx context.Context, w *pgas.World) error {
	deck, err := pgas.NewArray[int](ctx, w.Team(), 52, pgas.Cyclic()) // dealt out one by one
	if err != nil {
		return err
	}
	if err := deck.Apply(ctx, func(i, _ int) int { return 100 + i }); err != nil {
		return err
	}
	at := []int{51, 0, 17, 18, 19}
	hand := make([]int, len(at))
	if err := deck.Gather(hand, at); err != nil { // hand[k] is element at[k]
		return err
	}
	if w.Rank() == 0 {
		for k, i := range at {
			owner, _ := deck.Owner(i)
			fmt.Printf("element %d, on rank %d, is %d\n", i, owner, hand[k])
		}
	}
	return deck.Free(ctx)
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
