package rpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	pgsync "gopgas/sync"
)

// TestFunctionsWaitForThemselves: what would have a function wait for its own end is an error: a Quiesce or a Close, and a Flush of what its rank has sent itself, it among that.
func TestFunctionsWaitForThemselves(t *testing.T) {
	pgastest.Each(t, []int{1, 2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		var errs []error
		note := rpc.HandleInTurn(s, "note", func(context.Context, int, int) (int, error) { return 0, nil })
		all := rpc.Handle(s, "all", func(ctx context.Context, _ int, _ int) (int, error) {
			ctx, cancel := pgastest.WithTimeout(ctx, w, time.Second)
			defer cancel()
			errs = append(errs, s.Quiesce(ctx), s.Close(ctx))
			return 0, nil
		})
		own := rpc.Handle(s, "own", func(ctx context.Context, _ int, _ int) (int, error) {
			ctx, cancel := pgastest.WithTimeout(ctx, w, time.Second)
			defer cancel()
			if err := note.Send(ctx, w.Rank(), 1); err != nil {
				return 0, err
			}
			errs = append(errs, s.Flush(ctx, w.Rank()))
			return 0, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		if _, err := all.Call(ctx, w.Rank(), 0); err != nil {
			return err
		}
		require.NoError(t, own.Send(ctx, w.Rank(), 0))
		require.NoError(t, s.Flush(ctx, w.Rank()))
		require.Len(t, errs, 3)
		for _, err := range errs {
			require.ErrorIs(t, err, pgsync.ErrState)
		}
		errs = nil
		if _, err := own.Call(ctx, w.Rank(), 0); err != nil { // it is not among what was sent
			return err
		}
		require.Equal(t, []error{nil}, errs)
		return s.Close(ctx)
	})
}
