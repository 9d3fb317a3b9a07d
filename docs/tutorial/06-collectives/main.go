// Command 06-collectives is a step of the tutorial: the ranks compute one number together.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// lesson: pi is the area under 4/(1+x*x) between 0 and 1; each rank adds up every Size-th strip.
func lesson(ctx context.Context, w *pgas.World) error {
	strips := make([]int, 1)
	if w.Rank() == 0 {
		strips[0] = 100_000 // only rank 0 knows, as if it had read a file
	}
	if err := pgsync.Broadcast(ctx, w.Team(), strips, 0); err != nil {
		return err
	}
	n, area := strips[0], 0.0
	for i := w.Rank(); i < n; i += w.Size() {
		x := (float64(i) + 0.5) / float64(n)
		area += 4 / (1 + x*x) / float64(n)
	}
	sum := []float64{area}
	if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil {
		return err
	}
	if w.Rank() == w.Size()-1 { // any rank could say it: all have the same bits
		fmt.Printf("pi is about %.8f\n", sum[0])
	}
	return nil
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
