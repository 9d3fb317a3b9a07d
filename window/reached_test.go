package window_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/sim"
	"gopgas/window"
)

// TestFreeOfWhatTheDeadHadAttached: the way to memory of a rank that is gone ends, though puts to it were under way, and what became of them is told.
func TestFreeOfWhatTheDeadHadAttached(t *testing.T) {
	c := pgastest.SimConfig{Ranks: 2, Seed: 1}
	c.Faults.Kill = []sim.Fault{{Rank: 1, At: time.Millisecond}}
	over := errors.New("all is well")
	r := pgastest.SimErrors(t, c, func(ctx context.Context, w *pgas.World) error {
		d, err := window.NewDynamic[int64](ctx, w.Team())
		if err != nil {
			return err
		}
		refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
		if err == nil && w.Rank() == 1 {
			refs.Local()[0], err = d.Alloc(1000)
		}
		if err = errors.Join(err, refs.Fence(ctx)); err != nil {
			return err
		}
		if w.Rank() == 1 {
			pgastest.Compute(w, time.Second)
			return nil
		}
		ref := make([]window.Ref, 1)
		if err := refs.Get(1, 0, ref); err != nil {
			return err
		}
		win, err := d.Reach(ref[0])
		for err == nil {
			err = win.Put(1, 0, make([]int64, 100))
			pgastest.Compute(w, 2*time.Millisecond)
		}
		require.ErrorIs(t, err, pgas.ErrPeerGone)
		require.ErrorIs(t, win.Free(ctx), pgas.ErrPeerGone, "puts were under way")
		require.ErrorIs(t, win.Put(1, 0, nil), pgas.ErrClosed)
		require.ErrorIs(t, win.Free(ctx), pgas.ErrClosed)
		return over
	})
	require.Nil(t, r.Stuck)
	require.ErrorIs(t, r.Errors[0], over)
}
