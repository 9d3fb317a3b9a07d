package window_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// waited calls open in a goroutine and returns when it is seen to wait in op; ended has its error.
func waited(ctx context.Context, w *pgas.World, op string, open func(ctx context.Context) error) (ended chan error) {
	ended = make(chan error, 1)
	go func() { ended <- open(ctx) }()
	for len(ended) == 0 {
		for _, wait := range w.Waits() {
			if wait.Op == op {
				return ended
			}
		}
		time.Sleep(time.Millisecond)
	}
	return ended
}

// TestEndBeforeItIsOpen: what ends an epoch is refused while another goroutine of the rank still waits in the call that opens it, and the lock's word, the
// counts and that call are as if nobody had asked.
func TestEndBeforeItIsOpen(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		win, err := window.AllocateConfig[int32](ctx, w.Team(), 1, window.Config{StrictEpochs: true})
		if err != nil {
			return err
		}
		for _, c := range []struct {
			name, op  string
			open      func(ctx context.Context) error
			end       func() error
			hold, let func() error // of rank 1: keeps the call of rank 0 waiting, and no longer
		}{
			{
				"lock", "lock", func(ctx context.Context) error { return win.Lock(ctx, 0, window.LockExclusive) }, func() error { return win.Unlock(0) },
				func() error { return win.Lock(ctx, 0, window.LockExclusive) }, func() error { return win.Unlock(0) },
			},
			{
				"shared lock", "lock", func(ctx context.Context) error { return win.Lock(ctx, 0, window.LockShared) }, func() error { return win.Unlock(0) },
				func() error { return win.Lock(ctx, 0, window.LockExclusive) }, func() error { return win.Unlock(0) },
			},
			{
				"lock all", "lock", win.LockAll, win.UnlockAll,
				func() error { return win.Lock(ctx, 1, window.LockExclusive) }, func() error { return win.Unlock(1) },
			},
			{
				"start", "start", func(ctx context.Context) error { return win.Start(ctx, []int{1}) }, win.Complete,
				func() error { return nil }, func() error { return errors.Join(win.Post([]int{0}), win.Wait(ctx)) },
			},
		} {
			if w.Rank() == 1 {
				if err := errors.Join(c.hold(), w.Barrier(ctx), w.Barrier(ctx), c.let(), w.Barrier(ctx)); err != nil {
					return err
				}
				continue
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			for _, ends := range []bool{true, false} {
				within, end := context.WithCancel(ctx)
				ended := waited(within, w, c.op, c.open)
				err := c.end()
				require.ErrorIs(t, err, window.ErrEpoch, c.name)
				require.ErrorContains(t, err, "waits still", c.name)
				require.ErrorIs(t, win.Put(0, 0, []int32{1}), window.ErrEpoch, c.name)
				require.ErrorIs(t, win.Put(1, 0, []int32{1}), window.ErrEpoch, c.name)
				require.Empty(t, ended, c.name)
				if ends {
					end()
					require.ErrorIs(t, <-ended, context.Canceled, c.name)
					require.ErrorContains(t, c.end(), "it ends what", c.name)
					continue
				}
				if err := errors.Join(w.Barrier(ctx), <-ended, c.end()); err != nil {
					end()
					return err
				}
				end()
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
}
