package window_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/atom"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// contend lets all ranks, with two goroutines each, add to, xor and mark words of rank 0; the outcome is exact.
func contend[T window.Bits](ctx context.Context, t *testing.T, w *pgas.World) error {
	const gos = 2
	rounds := 60
	if raceEnabled || testing.Short() {
		rounds = 20
	}
	if name := w.Team().Engine().NIC(); name == "soft" || name == "tcp" || name == "verbs" {
		rounds = 12 // each of the many tries of the compare-and-swap is a real round trip
	}
	win, err := window.Allocate[T](ctx, w.Team(), 5) // an odd number: the last 4-byte word has half an 8-byte one
	if err != nil {
		return err
	}
	errs := make([]error, gos)
	var wg sync.WaitGroup
	for g := range gos {
		wg.Go(func() {
			id := T(w.Rank()*gos + g)
			for i := range rounds {
				_, e1 := window.FetchAdd(win, 0, 0, id+1)
				_, e2 := window.FetchXor(win, 0, 1, T(1)<<id)
				_, e3 := window.FetchOr(win, 0, 2, T(1)<<id)
				_, e4 := window.FetchAnd(win, 0, 3, ^(T(1) << id))
				for { // a lock-free add by compare-and-swap, on the last word
					old, err := window.Load(win, 0, 4) // a Get beside atomics is a race
					if err != nil {
						errs[g] = err
						return
					}
					if was, err := window.CompareSwap(win, 0, 4, old, old+T(i)); err != nil || was == old {
						e4 = errors.Join(e4, err)
						break
					}
				}
				if errs[g] = errors.Join(e1, e2, e3, e4); errs[g] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		ids := w.Size() * gos
		var sum, all T
		for id := range ids {
			sum += T(id+1) * T(rounds)
			all |= T(1) << id
		}
		require.Equal(t, []T{sum, 0, all, 0, T(ids * rounds * (rounds - 1) / 2)}, win.Local())
	}
	return win.Free(ctx)
}

func TestIntegersUnderContention(t *testing.T) {
	pgastest.EachReal(t, upTo4, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, f := range []func(context.Context, *testing.T, *pgas.World) error{
			contend[int32], contend[uint32], contend[int64], contend[uint64], contend[int], contend[uintptr],
		} {
			if err := f(ctx, t, w); err != nil {
				return err
			}
		}
		return nil
	})
}

func floats[T float32 | float64](ctx context.Context, t *testing.T, w *pgas.World) error {
	const rounds = 100
	win, err := window.Allocate[T](ctx, w.Team(), 3)
	if err != nil {
		return err
	}
	for range rounds {
		if _, err := window.FetchAdd(win, 0, 1, 0.5); err != nil { // exact in both types
			return err
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		require.Equal(t, []T{0, T(w.Size()*rounds) / 2, 0}, win.Local())
		nan := T(math.NaN())
		_, err := window.Swap(win, 0, 2, nan)
		require.NoError(t, err)
		was, err := window.CompareSwap(win, 0, 2, nan, 7) // NaN is itself, by its bits
		require.NoError(t, err)
		require.True(t, was != was)
		was, err = window.CompareSwap(win, 0, 2, T(math.Copysign(0, -1)), 9)
		require.NoError(t, err)
		require.EqualValues(t, 7, was)
		_, err = window.Swap(win, 0, 2, 0)
		require.NoError(t, err)
		_, err = window.CompareSwap(win, 0, 2, T(math.Copysign(0, -1)), 9)
		require.NoError(t, err)
		require.Zero(t, win.Local()[2], "-0 is not 0")
	}
	return win.Free(ctx)
}

func TestFloatsUnderContention(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		return errors.Join(floats[float32](ctx, t, w), floats[float64](ctx, t, w))
	})
}

// accumulates compares Accumulate of every operation by one rank with plain arithmetic, then sums by all at once.
func accumulates[T pgsync.Number](ctx context.Context, t *testing.T, w *pgas.World) error {
	const n = 21
	win, err := window.Allocate[T](ctx, w.Team(), n)
	if err != nil {
		return err
	}
	e := atom.ElemOf[T]()
	last := w.Size() - 1
	if w.Rank() == 0 {
		rng := rand.New(rand.NewPCG(1, uint64(e.Kind)))
		want := make([]T, n)
		for op := range atom.Load + 2 {
			if e.Check(op) != nil || op > atom.Replace {
				require.ErrorIs(t, window.Accumulate(win, last, 0, make([]T, 1), op), window.ErrType, "op %d", uint8(op))
				continue
			}
			for range 3 {
				lo := rng.IntN(n)
				src := make([]T, rng.IntN(n-lo+1))
				for i := range src {
					src[i] = T(rng.IntN(200))
					want[lo+i] = combine(op, want[lo+i], src[i])
				}
				if err := window.Accumulate(win, last, lo, src, op); err != nil {
					return err
				}
			}
			got := make([]T, n)
			if err := errors.Join(win.Flush(last), win.Get(last, 0, got)); err != nil {
				return err
			}
			require.Equal(t, want, got, "%s of %s", op, e.Kind)
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	clear(win.Local())
	if err := win.Fence(ctx); err != nil {
		return err
	}
	src := make([]T, n)
	for i := range src {
		src[i] = T(i)
	}
	for m := range w.Size() {
		if err := window.Accumulate(win, m, 0, src, pgsync.Sum); err != nil {
			return err
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	for i, v := range win.Local() {
		require.Equal(t, T(i)*T(w.Size()), v, "element %d of %s", i, e.Kind)
	}
	return win.Free(ctx)
}

func combine[T pgsync.Number](op pgsync.Op, a, b T) T {
	switch op {
	case pgsync.Sum:
		return a + b
	case pgsync.Prod:
		return a * b
	case pgsync.Min:
		return min(a, b)
	case pgsync.Max:
		return max(a, b)
	case pgsync.Replace:
		return b
	}
	x, y := int64(a), int64(b) // integers only
	switch op {
	case pgsync.And:
		return T(x & y)
	case pgsync.Or:
		return T(x | y)
	}
	return T(x ^ y)
}

func TestAccumulate(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, f := range []func(context.Context, *testing.T, *pgas.World) error{
			accumulates[int8], accumulates[uint8], accumulates[int16], accumulates[uint16], accumulates[int32], accumulates[uint32],
			accumulates[int64], accumulates[uint64], accumulates[int], accumulates[uint], accumulates[uintptr],
			accumulates[float32], accumulates[float64],
		} {
			if err := f(ctx, t, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestNarrowNeighbours: sums on neighbouring bytes of one word by different ranks lose nothing.
func TestNarrowNeighbours(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const rounds = 100
		win, err := window.Allocate[uint8](ctx, w.Team(), 11)
		if err != nil {
			return err
		}
		for range rounds {
			for _, disp := range []int{w.Rank(), 10 - w.Rank()} {
				if err := window.Accumulate(win, 0, disp, []uint8{1}, pgsync.Sum); err != nil {
					return err
				}
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			want := make([]uint8, 11)
			for r := range w.Size() {
				want[r], want[10-r] = rounds, rounds
			}
			require.Equal(t, want, win.Local())
		}
		return win.Free(ctx)
	})
}
