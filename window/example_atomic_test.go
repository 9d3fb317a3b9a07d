package window_test

import (
	"context"
	"errors"
	"fmt"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// A rank waits until another one has its data there: a flag that is set by Store, behind a Flush of the data, and looked at by Load.
func ExampleStore() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 2) // data, and a flag
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			err := errors.Join(win.Put(0, 0, []int64{42}), win.Flush(0), window.Store(win, 0, 1, 1), win.Flush(0))
			return errors.Join(err, win.Free(ctx))
		}
		for set := int64(0); set == 0; {
			if set, err = window.Load(win, 0, 1); err != nil {
				return err
			}
		}
		there := make([]int64, 1)
		if err := win.Get(0, 0, there); err != nil {
			return err
		}
		fmt.Println(there[0])
		return win.Free(ctx)
	})
	// Output: 42
}

// A look at the counters of all ranks, while they count.
func ExampleLoadNB() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if err := errors.Join(window.Store(win, w.Rank(), 0, int32(10*w.Rank())), win.Fence(ctx)); err != nil {
			return err
		}
		all, hs := make([]int32, w.Size()), make(window.Handles, w.Size())
		for m := range all {
			if hs[m], err = window.LoadNB(win, m, 0, &all[m]); err != nil {
				return err
			}
		}
		if err := hs.Wait(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(all)
		}
		return win.Free(ctx)
	})
	// Output: [0 10 20]
}

// While a rank works on one task it asks for the number of its next one.
func ExampleFetchAddNB() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 2) // the next task; the sum of what was done
		if err != nil {
			return err
		}
		var next, done int64
		h, err := window.FetchAddNB(win, 0, 0, 1, &next)
		if err != nil {
			return err
		}
		for {
			if err := h.Wait(ctx); err != nil {
				return err
			}
			task := next
			if task >= 10 {
				break
			}
			if h, err = window.FetchAddNB(win, 0, 0, 1, &next); err != nil {
				return err
			}
			done += task * task // the work, with the request on its way
		}
		if _, err := window.FetchAdd(win, 0, 1, done); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(win.Local()[1])
		}
		return win.Free(ctx)
	})
	// Output: 285
}

// All ranks count the letters of a text in a histogram that is spread over them.
func ExampleScatterAccumulate() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 9)
		if err != nil {
			return err
		}
		text := []string{"the quick brown fox", "jumps over", "the lazy dog"}[w.Rank()]
		var letters []int
		for _, c := range text {
			if c != ' ' {
				letters = append(letters, int(c-'a'))
			}
		}
		ones := make([]int32, len(letters))
		for i := range ones {
			ones[i] = 1
		}
		place := func(i int) (target, disp int) { return letters[i] % 3, letters[i] / 3 }
		if err := window.ScatterAccumulate(win, place, ones, pgsync.Sum); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == int('o'-'a')%3 {
			fmt.Println(win.Local()[('o'-'a')/3], "times o")
		}
		return win.Free(ctx)
	})
	// Output: 4 times o
}
