package window_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// inFlight has every rank make flights fetch-adds of one word of rank 0 before it waits for any: each old value is seen once.
func inFlight[T window.Word](ctx context.Context, t *testing.T, w *pgas.World) error {
	flights := 300 // more than the library has places for
	if nic := w.Team().Engine().NIC(); raceEnabled || nic == "tcp" || nic == "soft" {
		flights = 80
	}
	win, err := window.Allocate[T](ctx, w.Team(), 3)
	if err != nil {
		return err
	}
	seen, err := window.Allocate[int32](ctx, w.Team(), flights*w.Size())
	if err != nil {
		return err
	}
	hs, olds := make([]window.Handle, flights), make([]T, flights)
	for i := range hs {
		if hs[i], err = window.FetchAddNB(win, 0, 1, 1, &olds[i]); err != nil {
			return err
		}
	}
	for k := range hs { // some are dropped; the last one of all is waited for by FlushLocal or by Flush
		i := (k*37 + 11) % flights
		if i%5 == 0 {
			continue
		}
		for i%3 == 0 && !hs[i].Done() {
		}
		if err := hs[i].Wait(ctx); err != nil {
			return err
		}
		olds[i]++
	}
	flush := win.FlushLocal
	if w.Rank() == 1 {
		flush = win.Flush
	}
	if err := flush(0); err != nil {
		return err
	}
	for i, old := range olds {
		if i%5 != 0 {
			old--
		}
		if err := window.Accumulate(seen, 0, int(old), []int32{1}, pgsync.Sum); err != nil {
			return err
		}
	}
	if err := errors.Join(win.Fence(ctx), seen.Fence(ctx)); err != nil {
		return err
	}
	if w.Rank() == 0 {
		require.Equal(t, []T{0, T(flights * w.Size()), 0}, win.Local())
		require.Equal(t, slices.Repeat([]int32{1}, flights*w.Size()), seen.Local(), "old values")
	}
	return errors.Join(win.Free(ctx), seen.Free(ctx))
}

func TestAtomicsInFlight(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, f := range []func(context.Context, *testing.T, *pgas.World) error{inFlight[int32], inFlight[uint64], inFlight[float64]} {
			if err := f(ctx, t, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// begun begins each non-blocking atomic on element disp of the target, which is 12, 12, … and returns what they must bring and
// leave.
func begun[T window.Bits](win *window.Window[T], target int, old []T) (hs window.Handles, was, left []T, err error) {
	ops := []func(disp int) (window.Handle, error){
		func(d int) (window.Handle, error) { return window.FetchAddNB(win, target, d, 5, &old[d]) },
		func(d int) (window.Handle, error) { return window.SwapNB(win, target, d, 5, &old[d]) },
		func(d int) (window.Handle, error) { return window.CompareSwapNB(win, target, d, 12, 5, &old[d]) },
		func(d int) (window.Handle, error) { return window.CompareSwapNB(win, target, d, 13, 5, &old[d]) },
		func(d int) (window.Handle, error) { return window.FetchAndNB(win, target, d, 5, &old[d]) },
		func(d int) (window.Handle, error) { return window.FetchOrNB(win, target, d, 5, &old[d]) },
		func(d int) (window.Handle, error) { return window.FetchXorNB(win, target, d, 5, &old[d]) },
		func(d int) (window.Handle, error) { return window.LoadNB(win, target, d, &old[d]) },
	}
	for d, f := range ops {
		h, e := f(d)
		hs, err = append(hs, h), errors.Join(err, e)
	}
	return hs, slices.Repeat([]T{12}, len(ops)), []T{17, 5, 5, 12, 4, 13, 9, 12}, err
}

func everyNB[T window.Bits](ctx context.Context, t *testing.T, w *pgas.World) error {
	const n = 8
	win, err := window.Allocate[T](ctx, w.Team(), n)
	if err != nil {
		return err
	}
	for i := range win.Local() {
		win.Local()[i] = 12
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	old := make([]T, n)
	next := (w.Rank() + 1) % w.Size()
	hs, was, left, err := begun(win, next, old)
	if err := errors.Join(err, hs.Wait(ctx)); err != nil {
		return err
	}
	require.Equal(t, was, old)
	if err := win.Fence(ctx); err != nil {
		return err
	}
	require.Equal(t, left, win.Local())
	for _, bad := range [][2]int{{next, n}, {next, -1}} {
		_, err := window.FetchAddNB(win, bad[0], bad[1], 1, &old[0])
		require.ErrorIs(t, err, window.ErrRange)
	}
	_, err = window.SwapNB(win, w.Size(), 0, 1, &old[0])
	require.ErrorIs(t, err, window.ErrTarget)
	if err := win.Free(ctx); err != nil {
		return err
	}
	_, err = window.FetchXorNB(win, next, 0, 1, &old[0])
	require.ErrorIs(t, err, pgas.ErrClosed)
	return nil
}

func TestEveryAtomicNB(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		return errors.Join(everyNB[int32](ctx, t, w), everyNB[uint64](ctx, t, w))
	})
}

// TestNoPlaceForTheOldValue: nothing is begun without it, on mapped memory as through a NIC.
func TestNoPlaceForTheOldValue(t *testing.T) {
	for _, nic := range []bool{false, true} {
		pgastest.RunConfig(t, 2, pgastest.Config{NIC: nic}, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[int64](ctx, w.Team(), 1)
			if err != nil {
				return err
			}
			next := 1 - w.Rank()
			for name, f := range map[string]func() (window.Handle, error){
				"load": func() (window.Handle, error) { return window.LoadNB(win, next, 0, nil) },
				"add":  func() (window.Handle, error) { return window.FetchAddNB(win, next, 0, 1, nil) },
				"swap": func() (window.Handle, error) { return window.SwapNB(win, next, 0, 1, nil) },
				"cas":  func() (window.Handle, error) { return window.CompareSwapNB(win, next, 0, 0, 1, nil) },
				"and":  func() (window.Handle, error) { return window.FetchAndNB(win, next, 0, 1, nil) },
				"or":   func() (window.Handle, error) { return window.FetchOrNB(win, next, 0, 1, nil) },
				"xor":  func() (window.Handle, error) { return window.FetchXorNB(win, next, 0, 1, nil) },
			} {
				_, err := f()
				require.ErrorIs(t, err, window.ErrRange, name)
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
			require.Zero(t, win.Local()[0])
			return win.Free(ctx)
		})
	}
}

// eachElement compares accumulates at random places of all ranks, of every operation, with the same on slices: one rank after
// the other, so that the old values are known.
func eachElement[T pgsync.Number](ctx context.Context, t *testing.T, w *pgas.World, count int) error {
	const n = 11
	win, err := window.Allocate[T](ctx, w.Team(), n)
	if err != nil {
		return err
	}
	want := make([]T, n*w.Size()) // all ranks know all
	place := func(i int) (int, int) { i = (i*i + 3*i) % len(want); return i / n, i % n }
	half := T(1)
	for op := pgsync.Sum; op <= pgsync.Replace; op++ {
		src, old := make([]T, count), make([]T, count)
		for i := range src {
			src[i] = T((i*7 + int(op)) % 5) // few, so that sums and products stay exact
		}
		bits := op == pgsync.And || op == pgsync.Or || op == pgsync.Xor
		if bits && half/2 != 0 {
			require.ErrorIs(t, window.ScatterAccumulate(win, place, src, op), window.ErrType)
			continue
		}
		if op == pgsync.Prod || op == pgsync.Replace {
			src, old = src[:n*w.Size()/4], old[:n*w.Size()/4]
		}
		turn := int(op) % w.Size()
		if w.Rank() == turn {
			var err error
			if op%2 == 0 {
				err = window.GatherAccumulate(win, place, src, old, op)
			} else {
				err = window.ScatterAccumulate(win, place, src, op)
			}
			if err != nil {
				return err
			}
		}
		// Elements that are named twice get their operands in any order: of the old values one is known, the first or the only one
		// of those that stay the same.
		began := slices.Clone(want)
		named := map[int]int{}
		for i, v := range src {
			m, d := place(i)
			if op == pgsync.Replace && named[m*n+d] > 0 {
				continue
			}
			named[m*n+d]++
			want[m*n+d] = combine(op, want[m*n+d], v)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		got := make([]T, len(want))
		for m := range w.Size() {
			if err := win.Get(m, 0, got[m*n:(m+1)*n]); err != nil {
				return err
			}
		}
		if op != pgsync.Replace {
			require.Equal(t, want, got, "%T %s", half, op)
		}
		for i := range src {
			if m, d := place(i); w.Rank() == turn && op%2 == 0 && named[m*n+d] == 1 {
				require.Equal(t, began[m*n+d], old[i], "%T %s: old value %d", half, op, i)
			}
		}
		copy(want, got)
		if err := win.Fence(ctx); err != nil {
			return err
		}
	}
	require.ErrorIs(t, window.ScatterAccumulate(win, func(int) (int, int) { return 0, n }, make([]T, 2), pgsync.Sum), window.ErrRange)
	require.ErrorIs(t, window.GatherAccumulate(win, place, make([]T, 2), make([]T, 1), pgsync.Sum), window.ErrRange)
	require.ErrorIs(t, window.GatherAccumulate(win, place, make([]T, 1), make([]T, 1), 8), window.ErrType)
	require.NoError(t, window.GatherAccumulate(win, place, nil, nil, pgsync.Sum))
	return win.Free(ctx)
}

// TestScatteredBeyondTheEnd: an element that is not there, behind many that are, is found before anything is added.
func TestScatteredBeyondTheEnd(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 8)
		if err != nil {
			return err
		}
		for _, bad := range [][2]int{{0, 8}, {0, -1}, {2, 0}, {-1, 0}} {
			place := func(i int) (int, int) {
				if i == 150 {
					return bad[0], bad[1]
				}
				return i % 2, i % 8
			}
			ones, old := slices.Repeat([]int64{1}, 200), make([]int64, 200)
			require.Error(t, window.ScatterAccumulate(win, place, ones, pgsync.Sum), "%v", bad)
			require.Error(t, window.GatherAccumulate(win, place, ones, old, pgsync.Sum), "%v", bad)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		require.Equal(t, make([]int64, 8), win.Local())
		return win.Free(ctx)
	})
}

func TestScatteredAccumulates(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		return errors.Join(eachElement[uint8](ctx, t, w, 20), eachElement[int32](ctx, t, w, 700), eachElement[uint64](ctx, t, w, 90),
			eachElement[float64](ctx, t, w, 90))
	})
}

// TestScatteredSumsTogether: all ranks count at the same places, more than a list holds, and every old value is seen once.
func TestScatteredSumsTogether(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const words, count = 3, 2100
		win, err := window.Allocate[uint64](ctx, w.Team(), words)
		if err != nil {
			return err
		}
		place := func(i int) (int, int) { return i % w.Size(), i % words }
		ones, old := slices.Repeat([]uint64{1}, count), make([]uint64, count)
		if err := window.GatherAccumulate(win, place, ones, old, pgsync.Sum); err != nil {
			return err
		}
		if err := window.ScatterAccumulate(win, place, ones, pgsync.Sum); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		sum := uint64(0)
		for _, v := range win.Local() {
			sum += v
		}
		all := []uint64{0}
		if err := pgsync.AllReduce(ctx, w.Team(), all, []uint64{sum}, pgsync.Sum); err != nil {
			return err
		}
		require.EqualValues(t, 2*count*w.Size(), all[0])
		for k := range words * w.Size() { // at one place this rank sees the count grow
			var mine []uint64
			for i := k; i < count; i += words * w.Size() {
				mine = append(mine, old[i])
			}
			slices.Sort(mine)
			require.Equal(t, mine, slices.Compact(slices.Clone(mine)), "place %d: an old value twice", k)
		}
		return win.Free(ctx)
	})
}
