// Command 04-atomics is a step of the tutorial: tasks are handed out by a shared counter.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
	"gopgas/window"
)

const tasks = 100

// lesson: whoever is free takes the next task. Element 0 of rank 0 counts the tasks taken, element 1 adds results up.
func lesson(ctx context.Context, w *pgas.World) error {
	win, err := window.Allocate[int](ctx, w.Team(), 2)
	if err != nil {
		return err
	}
	for {
		task, err := window.FetchAdd(win, 0, 0, 1) // what it was before: nobody else gets the same number
		if err != nil {
			return err
		}
		if task >= tasks {
			break
		}
		if _, err := window.FetchAdd(win, 0, 1, task*task); err != nil {
			return err
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		fmt.Println("the sum of the squares below", tasks, "is", win.Local()[1])
	}
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
