package window_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// wordOf is the element with the lower bits of u.
func wordOf[T window.Word](u uint64) T {
	one := [1]T{}
	mem.Of(one[:]).SetBits(u)
	return one[0]
}

func bitsOf[T window.Word](v T) uint64 {
	one := [1]T{v}
	return mem.Of(one[:]).Bits()
}

// storesAndLoads stores what arithmetic would change, such as -0 and NaNs, into every element of the next rank, and loads it from there: the
// bits come back, and nothing beside the element has changed.
func storesAndLoads[T window.Word](ctx context.Context, t *testing.T, w *pgas.World) error {
	const n = 3 // an odd number: the last 4-byte element has half an 8-byte word
	patterns := []uint64{
		0, 1, ^uint64(0), 1 << 63, 1 << 31, 1<<63 | 1<<31, 0x0123456789abcdef, math.Float64bits(math.NaN()), 0x7ff0000000000001, // signaling
		uint64(math.Float32bits(float32(math.NaN()))), 0x7f800001, uint64(math.Float32bits(float32(math.Inf(-1)))),
	}
	win, err := window.Allocate[T](ctx, w.Team(), n)
	if err != nil {
		return err
	}
	next, want, old := (w.Rank()+1)%w.Size(), make([]uint64, n), new(T)
	for i, u := range patterns {
		at := i % n
		want[at] = bitsOf(wordOf[T](u))
		if err := errors.Join(window.Store(win, next, at, wordOf[T](u)), win.Flush(next)); err != nil {
			return err
		}
		for k := range n {
			v, err := window.Load(win, next, k)
			require.NoError(t, err)
			require.Equal(t, want[k], bitsOf(v), "%T %#x at %d: element %d", v, u, at, k)
			h, err := window.LoadNB(win, next, k, old)
			if err := errors.Join(err, h.Wait(ctx)); err != nil {
				return err
			}
			require.Equal(t, want[k], bitsOf(*old), "%T %#x at %d: element %d, begun", v, u, at, k)
		}
	}
	was, err := window.Swap(win, next, 0, 7) // among the other atomics
	require.NoError(t, err)
	require.Equal(t, want[0], bitsOf(was))
	v, err := window.Load(win, next, 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, v)
	return win.Free(ctx)
}

func TestLoadAndStoreOfEveryType(t *testing.T) {
	type named float32
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, f := range []func(context.Context, *testing.T, *pgas.World) error{
			storesAndLoads[int32], storesAndLoads[uint32], storesAndLoads[int64], storesAndLoads[uint64], storesAndLoads[int],
			storesAndLoads[uint], storesAndLoads[uintptr], storesAndLoads[float32], storesAndLoads[float64], storesAndLoads[named],
		} {
			if err := f(ctx, t, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// high is what is stored while others count from 0 on: both are exact in float32.
const high = 1 << 20

// tally is one word that all ranks count up, with a store of high by one of them in the midst.
type tally[T window.Word] struct {
	win           *window.Window[T]
	target, disp  int
	storer, loads bool
	adds          int
	after         int // of this goroutine's adds that found the stored value
}

// run is one goroutine's part. What it loads never goes back, and is never anything but a count or a count from high on.
func (c *tally[T]) run(most int) error {
	var last T
	for i := range c.adds {
		if c.loads {
			v, err := window.Load(c.win, c.target, c.disp)
			switch n := int(v); {
			case err != nil:
				return err
			case T(n) != v || v < last || n > most && n < high || n > high+most:
				return fmt.Errorf("loaded %v after %v; counted up to %d, or from %d on", v, last, most, high)
			}
			last = v
		}
		if c.storer && i == c.adds/2 {
			if err := errors.Join(window.Store(c.win, c.target, c.disp, high), c.win.Flush(c.target)); err != nil {
				return err
			}
		}
		old, err := window.FetchAdd(c.win, c.target, c.disp, 1)
		if err != nil {
			return err
		}
		if old >= high {
			c.after++
		}
	}
	return nil
}

// storedAmongAdds has all ranks count words up, and one of them, for each word another, store a value meanwhile: no add brings back what was
// there before the store, and none behind it is lost.
func storedAmongAdds[T window.Word](ctx context.Context, t *testing.T, w *pgas.World) error {
	words, adds := 8, 30
	if name := w.Team().Engine().NIC(); raceEnabled || testing.Short() || name == "soft" || name == "tcp" || name == "verbs" {
		words, adds = 3, 8
	}
	win, err := window.Allocate[T](ctx, w.Team(), words)
	if err != nil {
		return err
	}
	found, err := window.Allocate[int64](ctx, w.Team(), words)
	if err != nil {
		return err
	}
	for disp := range words {
		both := []*tally[T]{
			{win: win, disp: disp, adds: adds, loads: true}, {win: win, disp: disp, adds: adds, storer: disp%w.Size() == w.Rank()},
		}
		errs := make([]error, len(both))
		var wg sync.WaitGroup
		for g, c := range both {
			wg.Go(func() { errs[g] = c.run(2 * adds * w.Size()) })
		}
		wg.Wait()
		_, err := window.FetchAdd(found, 0, disp, int64(both[0].after+both[1].after))
		if err := errors.Join(append(errs, err)...); err != nil {
			return err
		}
	}
	if err := errors.Join(win.Fence(ctx), found.Fence(ctx)); err != nil {
		return err
	}
	if w.Rank() == 0 {
		for disp, v := range win.Local() {
			require.EqualValues(t, high+found.Local()[disp], v, "%T: word %d", v, disp)
		}
	}
	return errors.Join(win.Free(ctx), found.Free(ctx))
}

func TestStoresAmongAdds(t *testing.T) {
	pgastest.EachReal(t, upTo4, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		return errors.Join(storedAmongAdds[int32](ctx, t, w), storedAmongAdds[uint64](ctx, t, w), storedAmongAdds[float32](ctx, t, w),
			storedAmongAdds[float64](ctx, t, w))
	})
}

// wholeWords has every rank store words whose halves are alike into one element of rank 0, and load it: no load has halves of two stores.
func wholeWords[T window.Word](ctx context.Context, t *testing.T, w *pgas.World) error {
	rounds := 40
	if raceEnabled || testing.Short() {
		rounds = 10
	}
	win, err := window.Allocate[T](ctx, w.Team(), 3)
	if err != nil {
		return err
	}
	half := mem.SizeOf[T]() * 4
	for i := range rounds {
		u := uint64(w.Rank()*rounds+i) + 1 // few enough to be no NaN, of which the tests' own moves might keep less
		now := make([]T, 3)
		hs := make(window.Handles, len(now))
		err := window.Store(win, 0, 1, wordOf[T](u<<half|u))
		for k := range hs {
			h, e := window.LoadNB(win, 0, 1, &now[k])
			hs[k], err = h, errors.Join(err, e)
		}
		v, e := window.Load(win, 0, 1)
		if err := errors.Join(err, e, hs.Wait(ctx)); err != nil {
			return err
		}
		for _, v := range append(now, v) {
			u := bitsOf(v)
			require.Equal(t, u>>half, u&(1<<half-1), "%T %#x", v, u)
			require.LessOrEqual(t, u>>half, uint64(w.Size()*rounds))
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if w.Rank() == 0 {
		require.True(t, slices.Equal([]T{0, 0}, []T{win.Local()[0], win.Local()[2]}), "beside it: %v", win.Local())
	}
	return win.Free(ctx)
}

func TestWordsAreStoredWhole(t *testing.T) {
	pgastest.EachReal(t, upTo4, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		return errors.Join(wholeWords[uint32](ctx, t, w), wholeWords[int64](ctx, t, w), wholeWords[float32](ctx, t, w), wholeWords[float64](ctx, t, w))
	})
}

// TestLoadsAndStoresByWhatANICHas: the same where the target's CPU does all of it, none of it, or what it must not be asked for since the NIC's
// atomics and its own do not know of each other.
func TestLoadsAndStoresByWhatANICHas(t *testing.T) {
	for name, f := range map[string]transporttest.FabricConfig{
		"no atomics":               {NoAtomics: true},
		"its own atomics":          {NotCPU: true},
		"no messages":              {NoSends: true},
		"own atomics, no messages": {NotCPU: true, NoSends: true},
		"late":                     {NotCPU: true, Seed: 5, Jitter: 30 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			pgastest.RunConfig(t, 3, pgastest.Config{NIC: true, Fabric: f}, func(ctx context.Context, w *pgas.World) error {
				for _, f := range []func(context.Context, *testing.T, *pgas.World) error{
					storesAndLoads[int32], storesAndLoads[uint64], storesAndLoads[float32], storesAndLoads[float64],
					storedAmongAdds[int32], storedAmongAdds[uint64], storedAmongAdds[float64], wholeWords[uint32], wholeWords[int64], wholeWords[float64],
				} {
					if err := f(ctx, t, w); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// TestErrorsNameLoadsAndStores: what fails says what the program called.
func TestErrorsNameLoadsAndStores(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.Allocate[float64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		next := 1 % w.Size()
		_, err = window.Load(win, next, 1)
		require.ErrorContains(t, err, "load")
		require.ErrorContains(t, window.Store(win, next, 1, 0), "store")
		_, err = window.LoadNB(win, next, 0, nil)
		require.ErrorContains(t, err, "load")
		require.ErrorIs(t, err, window.ErrRange)
		return win.Free(ctx)
	})
}
