package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	pgsync "gopgas/sync"
	"gopgas/window"
)

// worker is a goroutine that moves data. Its lanes are written by nobody else.
type worker struct {
	s       *scene
	rnd     *rand.Rand
	base, n int
	want    [][]int64 // its lanes, by target
}

func newWorker(s *scene, id int) *worker {
	wk := &worker{s: s, rnd: s.rng(s.w.Rank(), id), want: make([][]int64, s.ranks)}
	wk.base, wk.n = s.laneOf(s.w.Rank(), id)
	for r := range wk.want {
		wk.want[r] = make([]int64, wk.n)
	}
	return wk
}

// work makes moves until all are made, or until the rank has ended.
func (wk *worker) work(ctx context.Context) error {
	lost := false // the rank that ends has ended, as seen from here
	for range wk.s.steps {
		to := wk.rnd.IntN(wk.s.ranks)
		if lost && to == wk.s.dead {
			to = wk.s.w.Rank()
		}
		err := wk.move(ctx, to)
		wk.s.step()
		switch {
		case err == nil:
		case wk.s.ended.Load():
			return nil // whatever it was: the rank is no more
		case to != wk.s.dead || wk.s.tolerate(err) != nil:
			return err
		default:
			lost = true
		}
	}
	return nil
}

// stretch is a random part of the lane.
func (wk *worker) stretch() (at, n int) {
	n = 1 + wk.rnd.IntN(min(wk.n, 64))
	if wk.n == longLane && wk.rnd.IntN(8) == 0 {
		n = 1 + wk.rnd.IntN(wk.n)
	}
	return wk.rnd.IntN(wk.n - n + 1), n
}

// fresh is n new values.
func (wk *worker) fresh(n int) []int64 {
	buf := make([]int64, n)
	for i := range buf {
		buf[i] = wk.rnd.Int64()
	}
	return buf
}

// move is one step. After it the lane is as want says for whoever flushes.
func (wk *worker) move(ctx context.Context, to int) error {
	win := wk.s.win
	at, n := wk.stretch()
	disp, lane := wk.base+at, wk.want[to][at:at+n]
	var err error
	switch wk.rnd.IntN(13) {
	case 0, 1:
		buf := wk.fresh(n)
		if err = win.Put(to, disp, buf); err == nil {
			copy(lane, buf)
			clear(buf) // it is this goroutine's again
		}
	case 2, 3:
		buf := wk.fresh(n)
		var h window.Handle
		if h, err = win.PutNB(to, disp, buf); err == nil {
			copy(lane, buf)
			err = wk.await(ctx, h)
			clear(buf)
		}
	case 4:
		return wk.look(to, at, n, func(buf []int64) error { return win.Get(to, disp, buf) })
	case 5:
		return wk.look(to, at, n, func(buf []int64) error {
			h, err := win.GetNB(to, disp, buf)
			return errors.Join(err, wk.await(ctx, h))
		})
	case 6:
		_, err = window.FetchAdd(win, to, wk.s.counter(), 1)
		wk.count(to, err)
	case 7:
		var old int64
		var h window.Handle
		if h, err = window.FetchAddNB(win, to, wk.s.counter(), 1, &old); err == nil {
			err = wk.await(ctx, h)
		}
		wk.count(to, err)
	case 8:
		return wk.swap(to, at)
	case 9:
		return wk.accumulate(to, at, n)
	case 10:
		cols := min(n, 7)
		rows := (n-cols)/(cols+2) + 1
		buf := wk.fresh(rows * cols)
		if err = win.PutSection(to, disp, buf, window.Packed(rows, cols, cols+2)); err == nil {
			for r := range rows {
				copy(lane[r*(cols+2):][:cols], buf[r*cols:])
			}
		}
	case 11:
		return wk.flush(ctx, to)
	case 12: // one nobody waits for, into memory that nobody keeps
		_, err = win.GetNB(to, disp, make([]int64, n))
		if wk.rnd.IntN(8) == 0 {
			runtime.GC()
		}
	}
	if err != nil {
		return fmt.Errorf("%d elements at %d: %w", n, disp, err)
	}
	return win.Order(to) // the next put may be to the same elements
}

// count notes that 1 was added. Where it failed it may have been added all the same, to the part of the rank that has ended.
func (wk *worker) count(to int, err error) {
	if err == nil {
		wk.s.added[to].Add(1)
	}
}

// await waits for a transfer: with a context that ends soon, with two goroutines, or plainly.
func (wk *worker) await(ctx context.Context, h window.Handle) error {
	switch wk.rnd.IntN(3) {
	case 0:
		short, cancel := context.WithTimeout(ctx, time.Duration(wk.rnd.IntN(50))*time.Microsecond)
		err := h.Wait(short)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	case 1:
		var other error
		var wg sync.WaitGroup
		wg.Go(func() { other = h.Wait(ctx) })
		err := h.Wait(ctx)
		wg.Wait()
		return errors.Join(err, other)
	}
	return h.Wait(ctx)
}

// look reads a stretch after a flush, and compares.
func (wk *worker) look(to, at, n int, read func(buf []int64) error) error {
	if err := wk.s.win.Flush(to); err != nil {
		return err
	}
	buf := make([]int64, n)
	if err := read(buf); err != nil {
		return err
	}
	want := wk.want[to][at : at+n]
	if to != wk.s.dead && !slices.Equal(buf, want) {
		for i := range buf {
			if buf[i] != want[i] {
				return fmt.Errorf("element %d of rank %d, the %d. of %d, is %d, want %d", wk.base+at+i, to, i, n, buf[i], want[i])
			}
		}
	}
	return nil
}

// lookAtAll compares all lanes but that of the rank that has ended.
func (wk *worker) lookAtAll() error {
	for to := range wk.s.ranks {
		if to == wk.s.dead {
			continue
		}
		if err := wk.look(to, 0, wk.n, func(buf []int64) error { return wk.s.win.Get(to, wk.base, buf) }); err != nil {
			return err
		}
	}
	return nil
}

// swap exchanges one element by compare-and-swap, which knows what is there.
func (wk *worker) swap(to, at int) error {
	win, p := wk.s.win, &wk.want[to][at]
	if err := win.Flush(to); err != nil {
		return err
	}
	v := wk.rnd.Int64()
	old, err := window.CompareSwap(win, to, wk.base+at, *p, v)
	if err != nil {
		return err
	}
	if old != *p && to != wk.s.dead {
		return fmt.Errorf("compare-and-swap of element %d of rank %d found %d, want %d", wk.base+at, to, old, *p)
	}
	*p = v
	return win.Flush(to)
}

// accumulate adds to a stretch.
func (wk *worker) accumulate(to, at, n int) error {
	win := wk.s.win
	if err := win.Flush(to); err != nil {
		return err
	}
	buf := wk.fresh(n)
	if err := window.Accumulate(win, to, wk.base+at, buf, pgsync.Sum); err != nil {
		return err
	}
	for i, v := range buf {
		wk.want[to][at+i] += v
	}
	clear(buf)
	return win.Flush(to)
}

// flush is one of the ways to wait for what was put. Those for all ranks may fail for the one that has ended.
func (wk *worker) flush(ctx context.Context, to int) error {
	win := wk.s.win
	switch wk.rnd.IntN(4) {
	case 0:
		return win.Flush(to)
	case 1:
		return win.FlushLocal(to)
	case 2:
		return wk.s.tolerate(win.FlushAll())
	}
	short, cancel := context.WithTimeout(ctx, time.Duration(wk.rnd.IntN(100))*time.Microsecond)
	defer cancel()
	if err := win.FlushContext(short, to); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
