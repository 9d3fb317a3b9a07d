package window_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
	"gopgas/pgas"
	"gopgas/window"
)

// fill makes elements of random bytes.
func fill[T any](n int, seed ...uint64) []T {
	rng := rand.New(rand.NewPCG(seed[0], seed[len(seed)-1]))
	out := make([]T, n)
	b := mem.Of(out).Data()
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return out
}

// same compares elements by their bytes, so that NaNs equal themselves.
func same[T any](t *testing.T, want, got []T, text ...any) {
	require.Len(t, got, len(want), text...)
	if !bytes.Equal(mem.Of(want).Data(), mem.Of(got).Data()) {
		require.Equal(t, want, got, text...)
		require.Fail(t, "other bytes", text...)
	}
}

// moves puts and gets ranges of a window of n elements T on the next rank, and sees what the owner sees.
func moves[T any](ctx context.Context, t *testing.T, w *pgas.World, n int) error {
	win, err := window.Allocate[T](ctx, w.Team(), n)
	if err != nil {
		return err
	}
	require.Len(t, win.Local(), n)
	same(t, make([]T, n), win.Local(), "not zeroed")
	if err := w.Barrier(ctx); err != nil { // nobody puts before all have looked
		return err
	}
	next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	mine, theirs := make([]T, n), make([]T, n) // what the next rank's part and mine should be
	ranges := [][2]int{{0, n}, {n, n}, {0, 0}, {0, 1}, {n - 1, n}, {n / 3, n / 2}, {1, n - 1}}
	for k, r := range ranges {
		lo, hi := min(max(r[0], 0), n), max(min(max(r[0], 0), n), min(r[1], n))
		src := fill[T](hi-lo, uint64(k), uint64(w.Rank()))
		copy(mine[lo:hi], src)
		copy(theirs[lo:hi], fill[T](hi-lo, uint64(k), uint64(prev)))
		if k%2 == 0 {
			err = win.Put(next, lo, src)
		} else {
			var h window.Handle
			if h, err = win.PutNB(next, lo, src); err == nil {
				err = h.Wait(ctx)
			}
		}
		if err != nil {
			return err
		}
		clear(src) // may be reused
		if err := win.Fence(ctx); err != nil {
			return err
		}
		same(t, theirs, win.Local())
		all, part := make([]T, n), make([]T, hi-lo)
		if err := win.Get(next, 0, all); err != nil {
			return err
		}
		same(t, mine, all)
		h, err := win.GetNB(next, lo, part)
		if err != nil {
			return err
		}
		if err := h.Wait(ctx); err != nil {
			return err
		}
		require.True(t, h.Done())
		same(t, mine[lo:hi], part)
		if err := win.Fence(ctx); err != nil { // nobody puts before all have looked
			return err
		}
	}
	return win.Free(ctx)
}

type mixed struct {
	A int8
	B float64
	C [3]uint16
}

func TestEveryElementType(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		types := []func(context.Context, *testing.T, *pgas.World, int) error{
			moves[int8], moves[uint64], moves[[3]byte], moves[[5]mixed], moves[float32], // of each size and shape one
			moves[uint16], moves[int32], moves[float64], moves[int], moves[bool], moves[complex128], moves[mixed], moves[uintptr],
		}
		if raceEnabled {
			types = types[:5]
		}
		for _, f := range types {
			for _, n := range []int{0, 1, 37} {
				if err := f(ctx, t, w, n); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestSizesAroundASlot(t *testing.T) {
	const slot = 64 << 10
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		many := 9
		if raceEnabled { // which takes long over bytes
			many = 2
		}
		for _, n := range []int{slot - 1, slot, slot + 1, many*slot + 5} {
			if err := moves[byte](ctx, t, w, n); err != nil {
				return err
			}
		}
		if err := moves[[3]byte](ctx, t, w, slot/3+7); err != nil {
			return err
		}
		return moves[float64](ctx, t, w, slot/8+1)
	})
}

// TestOrderKeepsPutsInOrder: a flag put after data and Order is never seen before the data.
func TestOrderKeepsPutsInOrder(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const n, rounds = 50, 30
		win, err := window.Allocate[uint64](ctx, w.Team(), n+1)
		if err != nil {
			return err
		}
		for round := uint64(1); round <= rounds; round++ {
			if w.Rank() == 0 {
				src := make([]uint64, n)
				for i := range src {
					src[i] = round
				}
				if err := win.Put(1, 0, src); err != nil {
					return err
				}
				if err := win.Order(1); err != nil {
					return err
				}
				if err := win.Put(1, n, []uint64{round}); err != nil {
					return err
				}
				if err := win.Flush(1); err != nil {
					return err
				}
				got := make([]uint64, n+1)
				if err := win.Get(1, 0, got); err != nil {
					return err
				}
				for i := range got {
					require.Equal(t, round, got[i], "flushed, element %d", i)
				}
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
}

// TestCreateOverSlices: parts of different lengths, some of them empty, that nobody allocated for the library. The
// memory of goroutine ranks is mapped only if the library made it, so it takes a NIC, or a world of one.
func TestCreateOverSlices(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		local := make([]int32, 3*w.Rank()*w.Rank())
		if w.Size() == 1 {
			local = make([]int32, 7)
		}
		win, err := window.Create(ctx, w.Team(), local)
		if _, _, nic := w.Team().Engine().Registered(); w.Size() > 1 && !nic {
			require.ErrorIs(t, err, pgas.ErrUnsupported)
			require.ErrorContains(t, err, "Config.NIC")
			require.ErrorContains(t, err, "Allocate the window instead")
			return nil
		}
		if err != nil {
			return err
		}
		for m := range w.Size() {
			want := 3 * m * m
			if w.Size() == 1 {
				want = 7
			}
			require.Equal(t, want, win.Len(m))
			require.ErrorIs(t, win.Put(m, want, []int32{1}), window.ErrRange)
			require.NoError(t, win.Put(m, want, nil))
			if want > 0 {
				if _, err := window.FetchAdd(win, m, want/2, 1); err != nil {
					return err
				}
			}
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if len(local) > 0 {
			require.EqualValues(t, w.Size(), local[len(local)/2], "the user's slice is the window")
		}
		return win.Free(ctx)
	})
}

func TestViews(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 16)
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		v, ok := win.View(next)
		_, none := win.View(w.Size())
		require.False(t, none)
		_, none = win.View(-1)
		require.False(t, none)
		if !ok {
			require.Panics(t, func() { v.Load(0) })
			require.Zero(t, v.Len())
			return win.Free(ctx)
		}
		require.Equal(t, 16, v.Len())
		v.Store(3, 42)
		v.Order()
		v.Store(4, 43)
		v.Flush()
		require.EqualValues(t, 42, v.Load(3))
		a := window.Atomics(v)
		require.EqualValues(t, 0, a.FetchAdd(5, 7))
		require.EqualValues(t, 7, a.FetchXor(5, 2))
		require.EqualValues(t, 5, a.Swap(5, 9))
		require.False(t, a.CompareSwap(5, 8, 1))
		require.True(t, a.CompareSwap(5, 9, 1))
		a.Store(6, -1)
		require.EqualValues(t, -1, a.Load(6))
		require.Panics(t, func() { v.Load(16) })
		require.Panics(t, func() { v.Store(-1, 0) })
		if err := win.Fence(ctx); err != nil {
			return err
		}
		require.EqualValues(t, []int64{42, 43, 1, -1}, win.Local()[3:7])
		if err := win.Free(ctx); err != nil {
			return err
		}
		require.Panics(t, func() { v.Load(0) }, "W2")
		require.Panics(t, func() { a.FetchAdd(0, 1) }, "W2")
		_, ok = win.View(next)
		require.False(t, ok)
		return nil
	})
}

// TestHeapReturns: windows allocated and freed leave the heap as it was.
func TestHeapReturns(t *testing.T) {
	rounds := 10_000
	if testing.Short() || raceEnabled {
		rounds = 1000
	}
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		rounds := rounds
		if !strings.Contains(t.Name(), "mapped") {
			rounds /= 20 // the same code above the path
		}
		reserved, used := w.HeapUsage()
		var kept []*window.Window[uint16]
		rng := rand.New(rand.NewPCG(9, 9)) // the same on all ranks
		for i := range rounds {
			n := rng.IntN(500)
			if i%100 == 0 {
				n = 200_000 // more than the chunk that is there
			}
			win, err := window.Allocate[uint16](ctx, w.Team(), n)
			if err != nil {
				return err
			}
			kept = append(kept, win)
			if len(kept) > 5 {
				k := rng.IntN(len(kept))
				if err := kept[k].Free(ctx); err != nil {
					return err
				}
				kept = append(kept[:k], kept[k+1:]...)
			}
		}
		for _, win := range kept {
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		r, u := w.HeapUsage()
		require.Equal(t, used, u)
		require.Equal(t, reserved, r)
		return nil
	})
}

// TestOneAfterTheOther: windows that are made and freed in turn take no more memory from the machine than the first of them.
func TestOneAfterTheOther(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		most := 0
		for range 8 {
			win, err := window.Allocate[uint64](ctx, w.Team(), 40_000) // more than the chunk that is there
			if err != nil {
				return err
			}
			reserved, _ := w.HeapUsage()
			if most == 0 {
				most = reserved
			}
			require.Equal(t, most, reserved)
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
