package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strings"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
)

// A map from strings to numbers, spread over the ranks: a key's owner counts it.
func Example() {
	text := strings.Fields("the map is not the territory and the word is not the thing")
	seed := maphash.MakeSeed() // in a job of processes, of something that is the same on all
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		counts := map[string]int{}
		s := rpc.New(w.Team())
		add := rpc.HandleInTurn(s, "add", func(_ context.Context, _ int, word string) (struct{}, error) {
			counts[word]++
			return struct{}{}, nil
		})
		count := rpc.HandleInTurn(s, "count", func(_ context.Context, _ int, word string) (int, error) { return counts[word], nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		owner := func(word string) int { return int(maphash.String(seed, word) % uint64(w.Size())) }
		for i := w.Rank(); i < len(text); i += w.Size() {
			if err := add.Send(ctx, owner(text[i]), text[i]); err != nil {
				return err
			}
		}
		if err := s.Quiesce(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			the, err := count.Call(ctx, owner("the"), "the")
			if err != nil {
				return err
			}
			fmt.Println(the, "times the")
		}
		return s.Close(ctx)
	})
	// Output: 4 times the
}

// A function that is no more than a value away from its data: calls go on side by side.
func ExampleFunc_CallNB() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		s := rpc.New(w.Team())
		square := rpc.Handle(s, "square", func(_ context.Context, _ int, x int) (int, error) { return x * x, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			var begun []*rpc.Pending[int, int]
			for m := range w.Size() {
				p, err := square.CallNB(ctx, m, m+1)
				if err != nil {
					return err
				}
				begun = append(begun, p)
			}
			sum := 0
			for _, p := range begun {
				v, err := p.Wait(ctx)
				if err != nil {
					return err
				}
				sum += v
			}
			fmt.Println(sum)
		}
		return s.Close(ctx)
	})
	// Output: 30
}

// What a function returns as an error is told apart from an error of the call itself, as of a rank that is gone.
func ExampleError() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		s := rpc.New(w.Team())
		root := rpc.Handle(s, "root", func(_ context.Context, _ int, x float64) (float64, error) {
			if x < 0 {
				return 0, fmt.Errorf("%v has no root", x)
			}
			return math.Sqrt(x), nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			_, err := root.Call(ctx, 1, -4)
			var told *rpc.Error
			fmt.Println(errors.As(err, &told), err)
		}
		return s.Close(ctx)
	})
	// Output: true rank 1: root: -4 has no root
}
