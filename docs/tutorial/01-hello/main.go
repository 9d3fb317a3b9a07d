// Command 01-hello is the first step of the tutorial: every rank says who it is.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
)

// lesson is what every rank does.
func lesson(ctx context.Context, w *pgas.World) error {
	fmt.Printf("I am rank %d of %d\n", w.Rank(), w.Size())
	return w.Barrier(ctx) // wait until all ranks have come here
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
