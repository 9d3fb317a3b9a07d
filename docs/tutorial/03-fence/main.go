// Command 03-fence is a step of the tutorial: when what has been put can be read.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
	"gopgas/window"
)

// lesson: rank 0 fills the others' parts out of one buffer, then each rank reads what its neighbour was given.
func lesson(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int](ctx, w.Team(), 2)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		buf := make([]int, 2)
		for target := range w.Size() {
			buf[0], buf[1] = target, target*target
			if err := win.Put(target, 0, buf); err != nil {
				return err
			}
			// The put has taken what it needs: buf may change at once.
		}
	}
	if err := win.Fence(ctx); err != nil { // what rank 0 has put is there, and all know it
		return err
	}
	next, got := (w.Rank()+1)%w.Size(), make([]int, 2)
	if err := win.Get(next, 0, got); err != nil { // got is there when Get returns
		return err
	}
	fmt.Println("rank", w.Rank(), "reads", got, "of rank", next)
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
