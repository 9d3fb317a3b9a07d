package window_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/sim"
	"gopgas/window"
)

// accumulateAs has rank 0 accumulate with every operation on one element type, and wants what an ordinary variable
// becomes. ops has the operations and their results of old and v.
func accumulateAs[T pgsync.Number](ctx context.Context, w *pgas.World, old, v T, ops map[window.Op]T, refused ...window.Op) error {
	win, err := window.Allocate[T](ctx, w.Team(), 16)
	if err != nil {
		return err
	}
	for op := pgsync.Sum; op <= pgsync.Replace; op++ { // in the same order on all ranks
		want, ok := ops[op]
		if !ok {
			continue
		}
		if w.Rank() == 1 {
			for i := range win.Local() {
				win.Local()[i] = old
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := window.Accumulate(win, 1, 3, []T{v, v, v}, op); err != nil {
				return err
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		for i, have := range win.Local() {
			expect := old
			if i >= 3 && i < 6 {
				expect = want
			}
			if w.Rank() == 1 && have != expect {
				return fmt.Errorf("%T %s: element %d is %v, want %v", v, op, i, have, expect)
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
	}
	for _, op := range refused {
		if err := window.Accumulate(win, 1, 0, []T{v}, op); err == nil {
			return fmt.Errorf("%T %s was not refused", v, op)
		}
	}
	return win.Free(ctx)
}

// accumulateInt is accumulateAs with values that every integer type has.
func accumulateInt[T window.Bits | ~int8 | ~int16 | ~uint8 | ~uint16](ctx context.Context, w *pgas.World) error {
	old, v := T(12), T(10)
	return accumulateAs(ctx, w, old, v, map[window.Op]T{
		pgsync.Sum: old + v, pgsync.Prod: old * v, pgsync.Min: v, pgsync.Max: old, pgsync.And: old & v, pgsync.Or: old | v,
		pgsync.Xor: old ^ v, pgsync.Replace: v,
	}, 8)
}

// ticks and degrees are numbers by another name.
type (
	ticks   int16
	degrees float32
)

func TestAccumulateEveryOperation(t *testing.T) {
	const never = window.Op(8) // compare-swap is not one of Accumulate's
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		if err := accumulateAs[int64](ctx, w, -12, 10, map[window.Op]int64{
			pgsync.Sum: -2, pgsync.Prod: -120, pgsync.Min: -12, pgsync.Max: 10, pgsync.And: -12 & 10, pgsync.Or: -12 | 10,
			pgsync.Xor: -12 ^ 10, pgsync.Replace: 10,
		}, never); err != nil {
			return err
		}
		if err := accumulateAs[uint32](ctx, w, math.MaxUint32, 10, map[window.Op]uint32{
			pgsync.Sum: 9, pgsync.Prod: math.MaxUint32 - 9, pgsync.Min: 10, pgsync.Max: math.MaxUint32, pgsync.And: 10,
			pgsync.Or: math.MaxUint32, pgsync.Xor: math.MaxUint32 - 10, pgsync.Replace: 10,
		}, never); err != nil {
			return err
		}
		if err := accumulateAs[float64](ctx, w, -1.5, 4, map[window.Op]float64{
			pgsync.Sum: 2.5, pgsync.Prod: -6, pgsync.Min: -1.5, pgsync.Max: 4, pgsync.Replace: 4,
		}, pgsync.And, pgsync.Or, pgsync.Xor, never); err != nil {
			return err
		}
		if err := accumulateAs[float32](ctx, w, -1.5, 4, map[window.Op]float32{
			pgsync.Sum: 2.5, pgsync.Prod: -6, pgsync.Min: -1.5, pgsync.Max: 4, pgsync.Replace: 4,
		}, pgsync.And, pgsync.Or, pgsync.Xor, never); err != nil {
			return err
		}
		for _, f := range []func(context.Context, *pgas.World) error{
			accumulateInt[int8], accumulateInt[int16], accumulateInt[int32], accumulateInt[int],
			accumulateInt[uint8], accumulateInt[uint16], accumulateInt[uint64], accumulateInt[uint], accumulateInt[uintptr], accumulateInt[ticks],
		} {
			if err := f(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestAccumulateTogether has all ranks add to and xor the same elements: no update may be lost.
func TestAccumulateTogether(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		sums, err := window.Allocate[float64](ctx, w.Team(), 4)
		if err != nil {
			return err
		}
		xors, err := window.Allocate[uint64](ctx, w.Team(), 4)
		if err != nil {
			return err
		}
		const rounds = 300
		for i := range rounds {
			if err := window.Accumulate(sums, 0, 0, []float64{1, 2, 3, 4}, pgsync.Sum); err != nil {
				return err
			}
			x := uint64(i+1)<<8 | 1<<w.Rank()
			if err := window.Accumulate(xors, 0, 1, []uint64{x, x}, pgsync.Xor); err != nil {
				return err
			}
		}
		for _, f := range []func(context.Context) error{sums.Fence, xors.Fence} {
			if err := f(ctx); err != nil {
				return err
			}
		}
		if w.Rank() == 0 {
			require.Equal(t, []float64{900, 1800, 2700, 3600}, sums.Local())
			want := uint64(0)
			for r := range 3 {
				for i := range rounds {
					want ^= uint64(i+1)<<8 | 1<<r
				}
			}
			require.Equal(t, []uint64{0, want, want, 0}, xors.Local())
		}
		if err := sums.Free(ctx); err != nil {
			return err
		}
		return xors.Free(ctx)
	})
}

// TestAccumulateBounds wants errors, and nothing moved, outside the target's part.
func TestAccumulateBounds(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 4)
		if err != nil {
			return err
		}
		for _, c := range []struct{ target, disp, n int }{{2, 0, 1}, {-1, 0, 1}, {1, 4, 1}, {1, -1, 1}, {1, 3, 2}, {1, 0, 5}} {
			if err := window.Accumulate(win, c.target, c.disp, make([]int64, c.n), pgsync.Replace); err == nil {
				return fmt.Errorf("%v was not refused", c)
			}
		}
		return win.Free(ctx)
	})
}

// TestAtomicsOfTheNICOnMappedMemory: where ranks share nodes, but not all of them, atomics are the NIC's on mapped memory too. They are flushed, flushed locally, fenced
// and kept before a signal like any others; puts there are stores.
func TestAtomicsOfTheNICOnMappedMemory(t *testing.T) {
	for name, f := range map[string]sim.Faults{"good": {}, "late": {Delay: 20 * time.Microsecond}} {
		t.Run(name, func(t *testing.T) {
			c := pgastest.SimConfig{Ranks: 3, RanksPerNode: 2, Mapped: true, Seed: 1, Faults: f}
			pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
				const n = 100
				win, err := window.Allocate[uint64](ctx, w.Team(), n*w.Size())
				if err != nil {
					return err
				}
				signals, err := pgsync.NewSignals(ctx, w.Team(), w.Size())
				if err != nil {
					return err
				}
				ones := slices.Repeat([]uint64{1}, n)
				got := make([]uint64, n)
				mine := n * w.Rank() // each rank has a stretch of every part
				check := func(target int, what string, want uint64) {
					require.NoError(t, win.Get(target, mine, got))
					require.Equal(t, slices.Repeat([]uint64{want}, n), got, "%s, rank %d on %d", what, w.Rank(), target)
				}
				for target := range w.Size() {
					require.NoError(t, window.Accumulate(win, target, mine, ones, pgsync.Or))
					require.NoError(t, win.Flush(target))
					check(target, "flush", 1)
					require.NoError(t, window.Accumulate(win, target, mine, ones, pgsync.Sum))
					require.NoError(t, win.FlushAll())
					check(target, "flush of all", 2)
					require.NoError(t, window.Accumulate(win, target, mine, ones, pgsync.Xor))
					require.NoError(t, win.FlushContext(ctx, target))
					check(target, "flush with a limit", 3)
					require.NoError(t, window.Accumulate(win, target, mine, ones, pgsync.Sum))
					require.NoError(t, win.Order(target))
					require.NoError(t, win.Put(target, mine, slices.Repeat([]uint64{10}, n)))
					require.NoError(t, win.Flush(target))
					check(target, "put behind it, in order", 10)
					old := slices.Repeat([]uint64{99}, n)
					for i := range old {
						_, err := window.FetchOrNB(win, target, mine+i, 4, &old[i])
						require.NoError(t, err)
					}
					require.NoError(t, win.FlushLocal(target))
					require.Equal(t, slices.Repeat([]uint64{10}, n), old)
					require.NoError(t, window.Accumulate(win, target, mine, ones, pgsync.Or))
					require.NoError(t, signals.Signal(w.Rank()).Set(target, 1))
				}
				for from := range w.Size() {
					if _, err := signals.Signal(from).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
						return err
					}
					require.Equal(t, slices.Repeat([]uint64{15}, n), win.Local()[n*from:n*(from+1)], "signalled by %d", from)
				}
				if err := w.Barrier(ctx); err != nil { // all have looked
					return err
				}
				for target := range w.Size() {
					require.NoError(t, window.Accumulate(win, target, mine, ones, pgsync.Sum))
				}
				if err := win.Fence(ctx); err != nil {
					return err
				}
				require.Equal(t, slices.Repeat([]uint64{16}, n*w.Size()), win.Local(), "fence")
				return errors.Join(w.Barrier(ctx), signals.Free(ctx), win.Free(ctx))
			})
		})
	}
}

// TestAccumulateToOneselfBetweenProcesses: a window over Go memory is reached by the NIC from other processes, so that its atomics are the NIC's, those to oneself too.
func TestAccumulateToOneselfBetweenProcesses(t *testing.T) {
	pgastest.RunProcs(t, 2, func(ctx context.Context, w *pgas.World) error {
		const n, rounds = 200, 50
		win, err := window.Create(ctx, w.Team(), make([]uint64, n))
		if err != nil {
			return err
		}
		for round := range uint64(rounds) {
			if err := window.Accumulate(win, w.Rank(), 0, slices.Repeat([]uint64{1}, n), pgsync.Sum); err != nil {
				return err
			}
			if err := win.Flush(w.Rank()); err != nil {
				return err
			}
			if got := win.Local(); !slices.Equal(got, slices.Repeat([]uint64{round + 1}, n)) {
				return fmt.Errorf("round %d: %d, want %d everywhere", round, got, round+1)
			}
		}
		return errors.Join(w.Barrier(ctx), win.Free(ctx))
	})
}
