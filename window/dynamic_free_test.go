package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// dynamics returns two dynamic windows, in each of which this rank has something attached.
func dynamics(ctx context.Context, t *pgsync.Team) (ds [2]*window.Dynamic[int64], refs [2]window.Ref, err error) {
	for i := range ds {
		if ds[i], err = window.NewDynamic[int64](ctx, t); err != nil {
			return ds, refs, err
		}
		if refs[i], err = ds[i].Alloc(3); err != nil {
			return ds, refs, err
		}
	}
	return ds, refs, nil
}

// TestMembersFreeDifferentDynamics: who frees another dynamic window than the others is told, as they are, and nobody loses what the others may use yet.
func TestMembersFreeDifferentDynamics(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, err := w.Team().Split(ctx, 0, w.Rank())
		if err != nil {
			return err
		}
		ds, refs, err := dynamics(ctx, team)
		if err != nil {
			return err
		}
		require.ErrorIs(t, ds[w.Rank()].Free(ctx), pgsync.ErrMismatch)
		for i := range ds {
			require.NotEmpty(t, ds[i].Local(refs[i]))
		}
		return nil
	})
}

// TestFreeOfADynamicThatWasLeft: a Free whose context has ended comes to its end with whatever collective call is next, and gives back what it was about. It is
// not taken for that of another dynamic window.
func TestFreeOfADynamicThatWasLeft(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		ds, refs, err := dynamics(ctx, w.Team())
		if err != nil {
			return err
		}
		signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		left := signals.Signal(0)
		if w.Rank() == 0 {
			over, cancel := context.WithCancel(ctx)
			cancel()
			require.ErrorIs(t, ds[0].Free(over), context.Canceled)
			require.ErrorIs(t, ds[1].Free(over), context.Canceled)
			for i := range ds {
				require.NotEmpty(t, ds[i].Local(refs[i]), "the others have not come")
			}
			if err := left.Set(1, 1); err != nil {
				return err
			}
		} else if _, err := left.WaitUntil(ctx, pgsync.Equal, 1); err != nil {
			return err
		} else if err := errors.Join(ds[0].Free(ctx), ds[1].Free(ctx)); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		for i := range ds {
			require.Nil(t, ds[i].Local(refs[i]))
			require.ErrorIs(t, ds[i].Free(ctx), pgas.ErrClosed)
		}
		return w.Barrier(ctx)
	})
}
