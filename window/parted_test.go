package window_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// epochsLeft are ways to wait, as every rank but 1, for what rank 1 does no more once it closes its world.
var epochsLeft = map[string]struct {
	before, wait func(ctx context.Context, rank int, w *window.Window[int64]) error
}{
	"lock": {
		func(ctx context.Context, rank int, w *window.Window[int64]) error {
			if rank != 1 {
				return nil
			}
			return w.Lock(ctx, 2, window.LockExclusive)
		},
		func(ctx context.Context, _ int, w *window.Window[int64]) error {
			return w.Lock(ctx, 2, window.LockShared)
		},
	},
	"lock all": {
		func(ctx context.Context, rank int, w *window.Window[int64]) error {
			if rank != 1 {
				return nil
			}
			return w.Lock(ctx, 1, window.LockExclusive)
		},
		func(ctx context.Context, _ int, w *window.Window[int64]) error { return w.LockAll(ctx) },
	},
	"start": {
		func(context.Context, int, *window.Window[int64]) error { return nil },
		func(ctx context.Context, _ int, w *window.Window[int64]) error { return w.Start(ctx, []int{1}) },
	},
	"wait": {
		func(_ context.Context, rank int, w *window.Window[int64]) error {
			if rank == 1 {
				return nil
			}
			return w.Post([]int{1})
		},
		func(ctx context.Context, _ int, w *window.Window[int64]) error { return w.Wait(ctx) },
	},
}

// TestCloseInAnEpoch: a member that closes its world releases no lock any more, and posts, starts and completes no epoch: who waits for that learns so, and whose it was.
func TestCloseInAnEpoch(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		for name, way := range epochsLeft {
			t.Run(p.Name+"/"+name, func(t *testing.T) {
				p.TimeLimit = 30 * time.Second
				errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
					win, err := window.AllocateConfig[int64](ctx, w.Team(), 8, window.Config{Epochs: true})
					if err != nil {
						return err
					}
					if err := way.before(ctx, w.Rank(), win); err != nil {
						return err
					}
					if err := w.Barrier(ctx); err != nil || w.Rank() == 1 {
						return err
					}
					err = way.wait(ctx, w.Rank(), win)
					require.ErrorIs(t, err, pgas.ErrPeerGone)
					require.ErrorContains(t, err, "rank 1 closes its world")
					return nil
				})
				for _, err := range errs {
					require.NoError(t, err)
				}
			})
		}
	}
}

// TestCloseWithASharedLock: of those that share a lock nobody keeps a list, so who wants it alone learns that it is lost when all others close their worlds.
func TestCloseWithASharedLock(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 30 * time.Second
			errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.AllocateConfig[int64](ctx, w.Team(), 8, window.Config{Epochs: true})
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					if err := win.Lock(ctx, 2, window.LockShared); err != nil {
						return err
					}
				}
				if err := w.Barrier(ctx); err != nil || w.Rank() != 0 {
					return err
				}
				err = win.Lock(ctx, 2, window.LockExclusive)
				require.ErrorIs(t, err, pgas.ErrPeerGone)
				require.ErrorContains(t, err, "closes its world")
				return nil
			})
			for _, err := range errs {
				require.NoError(t, err)
			}
		})
	}
}
