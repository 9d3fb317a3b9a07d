package window_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/sim"
	"gopgas/window"
)

// TestAtomicsOfOneRankKeepTheirOrder: what a rank does to an element by accumulates, stores and atomics, one after the other, takes place in that order,
// whatever carries each, and nothing need stand between.
func TestAtomicsOfOneRankKeepTheirOrder(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		sequence[int64](ctx, t, w)
		sequence[uint64](ctx, t, w)
		sequence[int32](ctx, t, w)
		sequence[float64](ctx, t, w)
		return nil
	})
}

// sequence has rank 0 do much to the elements of rank 1, and compares all that it is told with what a slice becomes.
func sequence[T int64 | uint64 | int32 | float64](ctx context.Context, t *testing.T, w *pgas.World) {
	const n, steps = 3, 60
	win, err := window.Allocate[T](ctx, w.Team(), n)
	require.NoError(t, err)
	if w.Rank() == 0 {
		rng := rand.New(rand.NewPCG(7, 1))
		want := make([]T, n)
		for step := range steps {
			i, v := rng.IntN(n), T(rng.IntN(100))
			switch rng.IntN(10) {
			case 0, 1:
				require.NoError(t, window.Store(win, 1, i, v))
				want[i] = v
			case 2:
				require.NoError(t, window.Accumulate(win, 1, i, []T{v}, pgsync.Sum))
				want[i] += v
			case 3:
				require.NoError(t, window.Accumulate(win, 1, 0, []T{v, v + 1, v + 2}, pgsync.Max))
				for k := range want {
					want[k] = max(want[k], v+T(k))
				}
			case 4:
				old, err := window.Swap(win, 1, i, v)
				require.NoError(t, err)
				require.Equal(t, want[i], old, "swap, step %d", step)
				want[i] = v
			case 5:
				old, err := window.CompareSwap(win, 1, i, want[i], v)
				require.NoError(t, err)
				require.Equal(t, want[i], old, "compare-swap, step %d", step)
				want[i] = v
			case 6:
				now, err := window.Load(win, 1, i)
				require.NoError(t, err)
				require.Equal(t, want[i], now, "load, step %d", step)
			case 7:
				old, err := window.FetchAdd(win, 1, i, v)
				require.NoError(t, err)
				require.Equal(t, want[i], old, "fetch-add, step %d", step)
				want[i] += v
			case 8: // the handle is waited for when something else has been asked for
				var old T
				h, err := window.FetchAddNB(win, 1, i, v, &old)
				require.NoError(t, err)
				require.NoError(t, window.Store(win, 1, i, v+1))
				require.NoError(t, h.Wait(ctx))
				require.Equal(t, want[i], old, "fetch-add that is not waited for, step %d", step)
				want[i] = v + 1
			case 9:
				old := make([]T, n)
				require.NoError(t, window.GetAccumulate(win, 1, 0, []T{v, v, v}, old, pgsync.Sum))
				require.Equal(t, want, old, "get-accumulate, step %d", step)
				for k := range want {
					want[k] += v
				}
			}
		}
		require.NoError(t, win.Flush(1))
		got := make([]T, n)
		require.NoError(t, win.Get(1, 0, got))
		require.Equal(t, want, got)
	}
	require.NoError(t, win.Free(ctx))
}

// TestAtomicsKeepTheirOrderOverBreaks: what waits for a connection that is made anew is not overtaken by what is asked for then.
func TestAtomicsKeepTheirOrderOverBreaks(t *testing.T) {
	broken := uint64(0)
	for at := range 40 {
		c := pgastest.SimConfig{Ranks: 2, Seed: uint64(at), Faults: sim.Faults{Delay: 5 * time.Microsecond, Break: []sim.Fault{
			{Rank: 0, Op: uint64(at + 1)}, {Rank: 0, Op: uint64(at + 3)}, {Rank: 1, Op: uint64(at + 2)},
		}}}
		r := pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[float64](ctx, w.Team(), 1)
			if err != nil {
				return err
			}
			if w.Rank() == 0 {
				for i := range 40 {
					if err := window.Store(win, 1, 0, float64(i)); err != nil {
						return err
					}
				}
				if err := win.Flush(1); err != nil {
					return err
				}
				var got [1]float64
				if err := win.Get(1, 0, got[:]); err != nil {
					return err
				}
				if got[0] != 39 {
					t.Errorf("break at %d: found %g, needed 39", at+1, got[0])
				}
			}
			return win.Free(ctx)
		})
		broken += r.NIC.Broken
	}
	require.Greater(t, broken, uint64(80))
}
