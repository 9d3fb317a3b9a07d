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
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestWindowsBeyondALimitThatNobodyKnew: where a NIC has not told how much it may register, windows are made all the same for which it has
// no room, on one member or on all; everything that windows can works on them, and what is small is registered as before.
func TestWindowsBeyondALimitThatNobodyKnew(t *testing.T) {
	const limit, large, small = 8 << 20, 5 << 18, 1 << 16
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: limit, Untold: true}}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		whole, err := window.Allocate[uint64](ctx, w.Team(), large)
		if err != nil {
			return err
		}
		mine := make([]uint64, small)
		if w.Rank() == 1 {
			mine = make([]uint64, large)
		}
		one, err := window.Create(ctx, w.Team(), mine)
		if err != nil {
			return err
		}
		little, err := window.Allocate[uint64](ctx, w.Team(), small)
		if err != nil {
			return err
		}
		for _, win := range []*window.Window[uint64]{whole, one, little} {
			if err := errors.Join(crossed(ctx, t, w, win), win.Fence(ctx)); err != nil {
				return err
			}
		}
		require.Positive(t, w.Stats()["loopback"]["message"].Ops)
		if w.Rank() == 0 { // much of a part that is not registered, in pieces
			const rows, cols = 200, 300
			src, back := make([]uint64, rows*cols), make([]uint64, rows*cols)
			for i := range src {
				src[i] = uint64(i) * 3
			}
			before, s := w.Stats()["loopback"], window.Packed(rows, cols, 2*cols)
			for w.Stats()["loopback"]["lease"].Ops < before["lease"].Ops+2 { // others may not be back yet
				clear(back)
				if err := errors.Join(one.PutSection(1, small, src, s), one.Flush(1), one.GetSection(1, small, back, s)); err != nil {
					return err
				}
				require.Equal(t, src, back)
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			require.Equal(t, []uint64{3 * 600, 3 * 601}, mine[small+4*300:small+4*300+2])
		}
		return errors.Join(whole.Free(ctx), one.Free(ctx), little.Free(ctx))
	})
}

// crossed has every rank write what it alone writes into every part of a window, in many ways, and read it back.
func crossed(ctx context.Context, t *testing.T, w *pgas.World, win *window.Window[uint64]) error {
	const share = 1 << 14
	rng, at := rand.New(rand.NewPCG(uint64(w.Rank()), 7)), 16+w.Rank()*share
	src, back := make([]uint64, share), make([]uint64, share)
	for i := range src {
		src[i] = rng.Uint64()
	}
	for to := range w.Size() {
		h, err := win.PutNB(to, at+share/2, src[share/2:])
		err = errors.Join(err, win.Put(to, at, src[:9]), win.PutStrided(to, at+9, 2, src[9:], 2, 1000), win.PutStrided(to, at+10, 2, src[10:], 2, 1000),
			win.Put(to, at+2009, src[2009:share/2]), h.Wait(ctx), win.Flush(to))
		if err = errors.Join(err, win.Get(to, at, back)); err != nil {
			return err
		}
		require.Equal(t, src, back, "rank %d", to)
		for i := range 3 {
			if _, err := window.FetchAdd(win, to, i, 1); err != nil {
				return err
			}
		}
		if err := window.Accumulate(win, to, 3, []uint64{2, 3}, pgsync.Sum); err != nil {
			return err
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	n := uint64(w.Size())
	require.Equal(t, []uint64{n, n, n, 2 * n, 3 * n}, win.Local()[:5])
	return nil
}
