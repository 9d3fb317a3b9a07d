// Command 02-put is a step of the tutorial: every rank writes into its neighbour's memory.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
	"gopgas/window"
)

// lesson: every rank writes its number into the memory of the next one.
func lesson(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int](ctx, w.Team(), 3) // three ints on every rank, all 0
	if err != nil {
		return err
	}
	next := (w.Rank() + 1) % w.Size()
	if err := win.Put(next, 1, []int{w.Rank()}); err != nil { // to rank next, element 1
		return err
	}
	if err := win.Fence(ctx); err != nil { // all puts of all ranks have arrived
		return err
	}
	fmt.Println("rank", w.Rank(), "has", win.Local())
	return win.Free(ctx)
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
