package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// ended runs f on each rank of worlds of two; it makes something, and returns what is to be looked at when the world has been closed.
func ended(t *testing.T, f func(ctx context.Context, w *pgas.World) (after func(t *testing.T), err error)) {
	over := errors.New("the world has ended, and all is well")
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			errs := pgastest.Errors(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				after, err := f(ctx, w)
				if err = errors.Join(err, w.Close(ctx)); err != nil {
					return err
				}
				after(t)
				return over
			})
			require.Equal(t, []error{over, over}, errs)
		})
	}
}

// TestDynamicAfterTheWorld: what was attached is out of reach, and the window makes nothing more.
func TestDynamicAfterTheWorld(t *testing.T) {
	ended(t, func(ctx context.Context, w *pgas.World) (func(*testing.T), error) {
		d, err := window.NewDynamic[int64](ctx, w.Team())
		if err != nil {
			return nil, err
		}
		ref, err := d.Alloc(3)
		return func(t *testing.T) {
			require.Nil(t, d.Local(ref), "memory that is not mapped any more")
			_, alloc := d.Alloc(3)
			_, attach := d.Attach(make([]int64, 3))
			_, reach := d.Reach(ref)
			for _, err := range []error{alloc, attach, reach, d.Detach(ref), d.Free(ctx)} {
				require.ErrorIs(t, err, pgas.ErrClosed)
			}
			require.NotEmpty(t, d.String())
		}, err
	})
}

// TestEmptyWindowAfterTheWorld: a window without elements says that it is closed like any other, and its locks are out of reach.
func TestEmptyWindowAfterTheWorld(t *testing.T) {
	ended(t, func(ctx context.Context, w *pgas.World) (func(*testing.T), error) {
		win, err := window.AllocateConfig[int64](ctx, w.Team(), 0, window.Config{Epochs: true})
		return func(t *testing.T) {
			_, tried := win.TryWait()
			for _, err := range []error{
				win.Put(0, 0, nil), win.Get(1, 0, nil), win.Flush(0), win.FlushAll(), win.FlushLocal(1), win.Order(0), win.Fence(ctx),
				win.Lock(ctx, 1-w.Rank(), window.LockExclusive), win.Unlock(0), win.LockAll(ctx), win.Post([]int{0}), win.Start(ctx, []int{1}),
				win.Complete(), win.Wait(ctx), tried, win.Free(ctx),
			} {
				require.ErrorIs(t, err, pgas.ErrClosed)
			}
		}, err
	})
}
