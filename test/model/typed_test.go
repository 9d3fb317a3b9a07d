package model

import (
	"context"
	"errors"
	"slices"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// The functions below let code for any element of the model call the functions of package window.

// windowOf makes the window of a trace: for every second seed one that nobody maps, beside a lock that the ranks of a node do.
func windowOf[T element](ctx context.Context, w *pgas.World, s uint64) (*window.Window[T], error) {
	if s%2 != 0 && w.Team().Engine().NIC() != "" {
		return window.Create(ctx, w.Team(), make([]T, elements))
	}
	return window.Allocate[T](ctx, w.Team(), elements)
}

func fetchAdd[T element](w *window.Window[T], target, at int, v T) (T, error) {
	return window.FetchAdd(w, target, at, v)
}

// begin begins an operation that fetches: what is not one of those, a get-accumulate takes the place of, and is over at once.
func begin[T element](w *window.Window[T], op pgsync.Op, target, at int, v T, old *T) (window.Handle, error) {
	switch op {
	case pgsync.Sum:
		return window.FetchAddNB(w, target, at, v, old)
	case pgsync.And:
		return window.FetchAndNB(w, target, at, v, old)
	case pgsync.Or:
		return window.FetchOrNB(w, target, at, v, old)
	case pgsync.Xor:
		return window.FetchXorNB(w, target, at, v, old)
	}
	return window.Handle{}, window.GetAccumulate(w, target, at, []T{v}, make([]T, 1), op)
}

func swap[T element](w *window.Window[T], target, at int, v T, nb bool) (T, error) {
	if !nb {
		return window.Swap(w, target, at, v)
	}
	old := new(T)
	h, err := window.SwapNB(w, target, at, v, old)
	if err = errors.Join(err, h.Wait(context.Background())); err != nil {
		return 0, err
	}
	return *old, nil
}

func compareSwap[T element](w *window.Window[T], target, at int, old, v T, nb bool) (T, error) {
	if !nb {
		return window.CompareSwap(w, target, at, old, v)
	}
	was := new(T)
	h, err := window.CompareSwapNB(w, target, at, old, v, was)
	if err = errors.Join(err, h.Wait(context.Background())); err != nil {
		return 0, err
	}
	return *was, nil
}

// scatter accumulates element i of src at the i'th place.
func scatter[T element](w *window.Window[T], place func(i int) (target, disp int), src []T, op pgsync.Op, fetch bool) error {
	if fetch {
		return window.GatherAccumulate(w, place, src, make([]T, len(src)), op)
	}
	return window.ScatterAccumulate(w, place, src, op)
}

// backwards are n elements from at on, the last one first.
func backwards(target, at, n int) func(i int) (int, int) {
	return func(i int) (int, int) { return target, at + n - 1 - i }
}

// downwards are the places of n elements from at on, the last one first.
func downwards(at, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = at + n - 1 - i
	}
	return all
}

func everyOther[T element](all []T) (some []T) {
	for i := 0; i < len(all); i += 2 {
		some = append(some, all[i])
	}
	return some
}

func reversed[T element](src []T) []T {
	src = slices.Clone(src)
	slices.Reverse(src)
	return src
}

func accumulate[T element](w *window.Window[T], target, at int, src []T, op pgsync.Op) error {
	return window.Accumulate(w, target, at, src, op)
}
