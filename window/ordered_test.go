package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestOrderBetweenAccumulates: what one rank does to one element, by accumulates, stores and atomics of all kinds, takes place one after the other where an Order
// stands between. MPI's programs are written for that; without one there is none.
func TestOrderBetweenAccumulates(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error {
		win, err := window.Allocate[int64](ctx, w.Team(), w.Size())
		if err != nil {
			return err
		}
		me, to := w.Rank(), (w.Rank()+1)%w.Size()
		accumulate := func(v int64, op window.Op) func() error {
			return func() error { return window.Accumulate(win, to, me, []int64{v}, op) }
		}
		at := func(int) (int, int) { return to, me }
		fetched := func(want int64, fetch func() (int64, error)) func() error {
			return func() error {
				got, err := fetch()
				if err == nil && got != want {
					err = fmt.Errorf("found %d, want %d", got, want)
				}
				return err
			}
		}
		steps := []func() error{
			accumulate(5, pgsync.Replace),
			accumulate(1, pgsync.Sum),
			fetched(6, func() (int64, error) { return window.Load(win, to, me) }),
			func() error { return window.Store(win, to, me, 7) },
			fetched(7, func() (int64, error) { return window.FetchAdd(win, to, me, 2) }),
			accumulate(6, pgsync.Max),
			accumulate(3, pgsync.Sum),
			fetched(12, func() (int64, error) { return window.Swap(win, to, me, 4) }),
			func() error { return window.ScatterAccumulate(win, at, []int64{8}, pgsync.Xor) },
			accumulate(1, pgsync.Sum),
			func() error { return win.Put(to, me, []int64{20}) },
			accumulate(2, pgsync.Sum),
			fetched(22, func() (int64, error) { return window.CompareSwap(win, to, me, 22, 30) }),
			accumulate(1, pgsync.Sum),
			func() error { return window.Store(win, to, me, 0) },
		}
		for round := range 20 {
			for i, step := range steps {
				if err := errors.Join(step(), win.Order(to)); err != nil {
					return fmt.Errorf("round %d, step %d: %w", round, i, err)
				}
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		for m, v := range win.Local() {
			if v != 0 {
				return fmt.Errorf("element %d is %d, and 0 was stored last", m, v)
			}
		}
		return win.Free(ctx)
	})
}
