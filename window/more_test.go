package window_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// getAccumulates compares every operation that T has with the same on a slice, old values included.
func getAccumulates[T pgsync.Number](ctx context.Context, t *testing.T, w *pgas.World) error {
	const n = 600 // more 8-byte elements than an active message or a chain has
	win, err := window.Allocate[T](ctx, w.Team(), n)
	if err != nil {
		return err
	}
	half := T(1)
	floats := half/2 != 0
	next := (w.Rank() + 1) % w.Size()
	want := make([]T, n)
	rng := rand.New(rand.NewPCG(1, 2))
	for op := pgsync.Sum; op <= pgsync.Replace; op++ {
		src, old := make([]T, n-7), make([]T, n-7)
		for i := range src {
			src[i] = T(rng.IntN(100))
		}
		if floats && (op == pgsync.And || op == pgsync.Or || op == pgsync.Xor) {
			require.ErrorIs(t, window.GetAccumulate(win, next, 3, src, old, op), window.ErrType)
			continue
		}
		if err := window.GetAccumulate(win, next, 3, src, old, op); err != nil {
			return err
		}
		require.Equal(t, want[3:n-4], old, "%T %s: old values", src[0], op)
		for i, v := range src {
			want[3+i] = combine(op, want[3+i], v)
		}
		if op == pgsync.Or { // old may be src
			if err := window.GetAccumulate(win, next, 0, src[:5], src[:5], pgsync.Replace); err != nil {
				return err
			}
			copy(want, src[:5])
			got := make([]T, 5)
			if err := win.Get(next, 0, got); err != nil {
				return err
			}
			copy(want, got)
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	require.Equal(t, want[5:], win.Local()[5:])
	require.ErrorIs(t, window.GetAccumulate(win, next, 0, make([]T, 3), make([]T, 2), pgsync.Sum), window.ErrRange)
	require.ErrorIs(t, window.GetAccumulate(win, next, n, make([]T, 1), make([]T, 1), pgsync.Sum), window.ErrRange)
	require.ErrorIs(t, window.GetAccumulate(win, next, 0, make([]T, 1), make([]T, 1), 8), window.ErrType)
	require.NoError(t, window.GetAccumulate(win, next, n, nil, nil, pgsync.Sum))
	return win.Free(ctx)
}

func TestGetAccumulate(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, f := range []func(context.Context, *testing.T, *pgas.World) error{
			getAccumulates[int8], getAccumulates[int16], getAccumulates[int32], getAccumulates[int64], getAccumulates[int],
			getAccumulates[uint8], getAccumulates[uint16], getAccumulates[uint32], getAccumulates[uint64], getAccumulates[uint], getAccumulates[uintptr],
			getAccumulates[float32], getAccumulates[float64], getAccumulates[ticks], getAccumulates[degrees],
		} {
			if err := f(ctx, t, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestGetAccumulateTogether: all ranks count on the same words, and every old value is seen once.
func TestGetAccumulateTogether(t *testing.T) {
	each(t, 3, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const rounds, words = 40, 5
		win, err := window.Allocate[int64](ctx, w.Team(), words)
		if err != nil {
			return err
		}
		seen, err := window.Allocate[int32](ctx, w.Team(), rounds*3)
		if err != nil {
			return err
		}
		ones, old := []int64{1, 1, 1, 1, 1}, make([]int64, words)
		for range rounds {
			if err := window.GetAccumulate(win, 0, 0, ones, old, pgsync.Sum); err != nil {
				return err
			}
			if err := window.Accumulate(seen, 0, int(old[2]), []int32{1}, pgsync.Sum); err != nil {
				return err
			}
		}
		if err := errors.Join(seen.Fence(ctx), win.Fence(ctx)); err != nil {
			return err
		}
		if w.Rank() == 0 {
			require.EqualValues(t, []int64{120, 120, 120, 120, 120}, win.Local())
			for i, v := range seen.Local() {
				require.EqualValues(t, 1, v, "the old value %d", i)
			}
		}
		return errors.Join(seen.Free(ctx), win.Free(ctx))
	})
}

// TestFlushLocal: what GetNB fetches is there afterwards, without a Wait.
func TestFlushLocal(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.Allocate[int16](ctx, w.Team(), 3000)
		if err != nil {
			return err
		}
		for i := range win.Local() {
			win.Local()[i] = int16(i)
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		dst := make([]int16, 3000)
		h, err := win.GetNB(1-w.Rank(), 0, dst)
		if err != nil {
			return err
		}
		if err := win.FlushLocal(1 - w.Rank()); err != nil {
			return err
		}
		require.True(t, h.Done())
		for i, v := range dst {
			require.EqualValues(t, i, v)
		}
		require.ErrorIs(t, win.FlushLocal(2), window.ErrTarget)
		return win.Free(ctx)
	})
}

func TestShared(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 8)
		if err != nil {
			return err
		}
		s, ok := win.Shared(1 - w.Rank())
		require.Equal(t, w.Transport(1-w.Rank()) == "shm", ok)
		if ok {
			s[2] = int32(10 + w.Rank())
		} else if err := win.Put(1-w.Rank(), 2, []int32{int32(10 + w.Rank())}); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		require.EqualValues(t, 11-w.Rank(), win.Local()[2])
		for _, m := range []int{-1, 2} {
			_, ok = win.Shared(m)
			require.False(t, ok)
		}
		if err := win.Free(ctx); err != nil {
			return err
		}
		_, ok = win.Shared(0)
		require.False(t, ok, "freed")
		return nil
	})
}

// TestPutSignalAdd: whoever has counted all signals sees all data.
func TestPutSignalAdd(t *testing.T) {
	sizes(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const rounds = 20
		win, err := window.Allocate[uint64](ctx, w.Team(), w.Size())
		if err != nil {
			return err
		}
		sigs, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		for round := uint64(1); round <= rounds; round++ {
			for m := range w.Size() {
				if err := win.PutSignalAdd(m, w.Rank(), []uint64{round}, sigs.Signal(0), 1); err != nil {
					return err
				}
			}
			if _, err := sigs.Signal(0).WaitUntil(ctx, pgsync.GreaterOrEqual, round*uint64(w.Size())); err != nil {
				return err
			}
			for m, v := range win.Local() {
				require.Equal(t, round, v, "from rank %d", m)
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
		}
		require.ErrorIs(t, win.PutSignalAdd(0, w.Size(), []uint64{1}, sigs.Signal(0), 1), window.ErrRange)
		require.Error(t, win.PutSignalAdd(0, 0, []uint64{99}, pgsync.Signal{}, 1), "no such signal")
		return errors.Join(win.Free(ctx), sigs.Free(ctx))
	})
}

// TestGatherNamesWhoIsGone is in worlds whose rank 1 ends: a gather over both names it. Where memory is mapped, that of a
// rank that is gone stays readable.
func TestGatherNamesWhoIsGone(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		if !p.NIC || p.Nodes != nil { // two ranks share a node, and mapped memory can be read when its owner is gone
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			errs := pgastest.Errors(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int64](ctx, w.Team(), 100)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					return errors.New("enough")
				}
				dst := make([]int64, 200)
				for err == nil {
					err = win.Gather(dst, func(i int) (int, int) { return i % 2, i / 2 })
				}
				require.ErrorIs(t, err, pgas.ErrPeerGone)
				var oe *pgas.OpError
				require.ErrorAs(t, err, &oe)
				require.Equal(t, 1, oe.Rank)
				return err
			})
			require.ErrorContains(t, errs[1], "enough")
		})
	}
}
