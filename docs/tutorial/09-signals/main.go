// Command 09-signals is a step of the tutorial: data that tells its receiver of itself.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// lesson: a list goes from rank to rank, and each adds its square. Who waits waits for its predecessor alone.
func lesson(ctx context.Context, w *pgas.World) error {
	list, err := window.Allocate[int](ctx, w.Team(), w.Size())
	if err != nil {
		return err
	}
	signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
	if err != nil {
		return err
	}
	come := signals.Signal(0)
	me, next := w.Rank(), (w.Rank()+1)%w.Size()
	if me > 0 {
		if _, err := come.WaitUntil(ctx, pgsync.Equal, 1); err != nil { // the list is here when the signal is
			return err
		}
	}
	list.Local()[me] = me * me
	if next != 0 {
		if err := list.PutSignal(next, 0, list.Local(), come, 1); err != nil {
			return err
		}
	} else {
		fmt.Println("rank", me, "has", list.Local())
	}
	if err := signals.Free(ctx); err != nil {
		return err
	}
	return list.Free(ctx)
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
