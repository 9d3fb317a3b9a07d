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

// Every rank puts its number into the part of the next one.
func ExampleWindow() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int](ctx, w.Team(), 4)
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		if err := errors.Join(win.Put(next, 2, []int{w.Rank()}), win.Fence(ctx)); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(win.Local())
		}
		return win.Free(ctx)
	})
	// Output: [0 0 2 0]
}

// A column of a matrix that lies in another rank's part, row after row, is a section of one column.
func ExampleSection() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		const rows, cols = 3, 4
		win, err := window.Allocate[int](ctx, w.Team(), rows*cols)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			column := window.Packed(rows, 1, cols)
			if err := win.PutSection(0, 2, []int{7, 8, 9}, column); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			for i := range rows {
				fmt.Println(win.Local()[i*cols : (i+1)*cols])
			}
		}
		return win.Free(ctx)
	})
	// Output:
	// [0 0 7 0]
	// [0 0 8 0]
	// [0 0 9 0]
}

// Elements of several members in one call.
func ExampleWindow_Gather() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int](ctx, w.Team(), 2)
		if err != nil {
			return err
		}
		win.Local()[1] = 100 * w.Rank()
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 2 {
			got := make([]int, 3)
			if err := win.Gather(got, func(i int) (target, disp int) { return 2 - i, 1 }); err != nil {
				return err
			}
			fmt.Println(got)
		}
		return win.Free(ctx)
	})
	// Output: [200 100 0]
}

// A get that is under way while the rank computes.
func ExampleHandle() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int](ctx, w.Team(), 3)
		if err != nil {
			return err
		}
		copy(win.Local(), []int{w.Rank(), w.Rank(), w.Rank()})
		if err := win.Fence(ctx); err != nil {
			return err
		}
		dst := make([]int, 3)
		h, err := win.GetNB(1-w.Rank(), 0, dst)
		if err != nil {
			return err
		}
		// … compute …
		if err := h.Wait(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(dst)
		}
		return win.Free(ctx)
	})
	// Output: [1 1 1]
}

// Where memory is mapped, a View inlines to plain loads and stores; where it is not, Put and Get do the same.
func ExampleView() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[float64](ctx, w.Team(), 8)
		if err != nil {
			return err
		}
		if v, ok := win.View(1); ok && w.Rank() == 0 {
			for i := range v.Len() {
				v.Store(i, float64(i)/2)
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println(win.Local()[:4])
		}
		return win.Free(ctx)
	})
	// Output: [0 0.5 1 1.5]
}

// A counter that all ranks add to.
func ExampleAtomic() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if v, ok := win.View(0); ok {
			window.Atomics(v).FetchAdd(0, 10)
		} else if _, err := window.FetchAdd(win, 0, 0, 10); err != nil { // works everywhere
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(win.Local())
		}
		return win.Free(ctx)
	})
	// Output: [40]
}

// Adds to several words at once and learns what they were.
func ExampleGetAccumulate() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int](ctx, w.Team(), 3)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			old := make([]int, 3)
			for range 2 {
				if err := window.GetAccumulate(win, 0, 0, []int{1, 2, 3}, old, pgsync.Sum); err != nil {
					return err
				}
				fmt.Println(old)
			}
		}
		return win.Free(ctx)
	})
	// Output:
	// [0 0 0]
	// [1 2 3]
}

// Ranks that change two words of rank 0 together, under its lock.
func ExampleWindow_Lock() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		win, err := window.AllocateConfig[int](ctx, w.Team(), 2, window.Config{Epochs: true})
		if err != nil {
			return err
		}
		if err := win.Lock(ctx, 0, window.LockExclusive); err != nil {
			return err
		}
		two := make([]int, 2)
		if err := win.Get(0, 0, two); err != nil {
			return err
		}
		if err := win.Put(0, 0, []int{two[0] + 1, two[1] - 1}); err != nil {
			return err
		}
		if err := errors.Join(win.Unlock(0), win.Fence(ctx)); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(win.Local())
		}
		return win.Free(ctx)
	})
	// Output: [4 -4]
}

// Rank 0 exposes its part to ranks 1 and 2, which fill it; nobody else waits.
func ExampleWindow_Post() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		win, err := window.AllocateConfig[int](ctx, w.Team(), 2, window.Config{Epochs: true})
		if err != nil {
			return err
		}
		switch w.Rank() {
		case 0:
			if err := errors.Join(win.Post([]int{1, 2}), win.Wait(ctx)); err != nil {
				return err
			}
			fmt.Println(win.Local())
		case 1, 2:
			if err := win.Start(ctx, []int{0}); err != nil {
				return err
			}
			if err := errors.Join(win.Put(0, w.Rank()-1, []int{w.Rank()}), win.Complete()); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
	// Output: [1 2]
}

// With StrictEpochs an access that no epoch covers is an error.
func ExampleConfig() {
	pgastest.Example(1, func(ctx context.Context, w *pgas.World) error {
		win, err := window.AllocateConfig[int](ctx, w.Team(), 1, window.Config{StrictEpochs: true})
		if err != nil {
			return err
		}
		fmt.Println(win.Put(0, 0, []int{1}))
		return win.Free(ctx)
	})
	// Output: put (rank 0): wrong epoch: access to 0 in no access epoch: open an access epoch first, by Fence, Start, Lock or LockAll
}

// Rank 1 makes memory by itself and tells rank 0 of it.
func ExampleDynamic() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		d, err := window.NewDynamic[int](ctx, w.Team())
		if err != nil {
			return err
		}
		mail, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			ref, err := d.Alloc(100)
			if err != nil {
				return err
			}
			d.Local(ref)[42] = 7
			if err := mail.Put(0, 0, []window.Ref{ref}); err != nil {
				return err
			}
		}
		if err := mail.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			ref := mail.Local()[0]
			win, err := d.Reach(ref)
			if err != nil {
				return err
			}
			got := make([]int, 1)
			if err := win.Get(ref.Member, 42, got); err != nil {
				return err
			}
			fmt.Println(ref.Member, ref.Len, got)
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		return errors.Join(mail.Free(ctx), d.Free(ctx))
	})
	// Output: 1 100 [7]
}

// keep puts the larger of v and what there is into element i of target, whatever kind of integer T is.
func keep[T window.Bits](w *window.Window[T], target, i int, v T) error {
	for {
		old, err := window.Load(w, target, i)
		if err != nil || old >= v {
			return err
		}
		if was, err := window.CompareSwap(w, target, i, old, v); err != nil || was == old {
			return err
		}
	}
}

func ExampleBits() {
	pgastest.Example(4, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[uint32](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if err := errors.Join(keep(win, 0, 0, uint32(w.Rank()*w.Rank())), win.Fence(ctx)); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(win.Local())
		}
		return win.Free(ctx)
	})
	// Output: [9]
}

// take empties an element and returns what was in it: integers and floating-point numbers can be swapped.
func take[T window.Word](w *window.Window[T], target, i int) (T, error) {
	return window.Swap(w, target, i, 0)
}

func ExampleWord() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[float64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if _, err := window.FetchAdd(win, 1, 0, 2.5); err != nil {
				return err
			}
			v, err := take(win, 1, 0)
			if err != nil {
				return err
			}
			rest, err := take(win, 1, 0)
			fmt.Println(v, rest, err)
		}
		return win.Free(ctx)
	})
	// Output: 2.5 0 <nil>
}

// The operations of Accumulate are those of reductions.
func ExampleOp() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		ops := []window.Op{pgsync.Sum, pgsync.Max, pgsync.Xor}
		win, err := window.Allocate[int](ctx, w.Team(), len(ops))
		if err != nil {
			return err
		}
		for i, op := range ops {
			if err := window.Accumulate(win, 0, i, []int{w.Rank() + 1}, op); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(win.Local())
		}
		return win.Free(ctx)
	})
	// Output: [6 3 0]
}

// Two pieces of one slice go to two members in one call.
func ExamplePiece() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int](ctx, w.Team(), 4)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			pieces := []window.Piece{
				{Target: 1, Disp: 0, Near: 0, Section: window.Packed(1, 2, 2)},
				{Target: 2, Disp: 2, Near: 2, Section: window.Packed(1, 2, 2)},
			}
			if err := win.PutSections([]int{1, 2, 3, 4}, pieces); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			one, two := make([]int, 4), make([]int, 4)
			if err := errors.Join(win.Get(1, 0, one), win.Get(2, 0, two)); err != nil {
				return err
			}
			fmt.Println(one, two)
		}
		return win.Free(ctx)
	})
	// Output: [1 2 0 0] [0 0 3 4]
}

// Readers share a lock; a writer has it alone.
func ExampleLockKind() {
	pgastest.Example(3, func(ctx context.Context, w *pgas.World) error {
		win, err := window.AllocateConfig[int](ctx, w.Team(), 2, window.Config{Epochs: true})
		if err != nil {
			return err
		}
		kind := window.LockShared
		if w.Rank() == 0 {
			kind = window.LockExclusive
		}
		if err := win.Lock(ctx, 0, kind); err != nil {
			return err
		}
		two := []int{5, 5}
		if w.Rank() == 0 {
			err = win.Put(0, 0, two)
		} else {
			err = win.Get(0, 0, two)
		}
		if err := errors.Join(err, win.Unlock(0), win.Fence(ctx)); err != nil {
			return err
		}
		if w.Rank() == 1 {
			fmt.Println("both or none:", two[0] == two[1])
		}
		return win.Free(ctx)
	})
	// Output: both or none: true
}

// A block of a matrix is on its way while this rank computes.
func ExampleHandles() {
	pgastest.Example(2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int](ctx, w.Team(), 3*4) // three rows of four
		if err != nil {
			return err
		}
		for i := range win.Local() {
			win.Local()[i] = 100*w.Rank() + i
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		block := make([]int, 6)
		var hs window.Handles
		if hs, err = win.GetSectionNB(1-w.Rank(), 1, block, window.Packed(3, 2, 4)); err != nil {
			return err
		}
		sum := 0
		for _, v := range win.Local() {
			sum += v
		}
		if err := hs.Wait(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println(sum, block)
		}
		return win.Free(ctx)
	})
	// Output: 66 [101 102 105 106 109 110]
}
