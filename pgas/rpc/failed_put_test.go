package rpc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	"gopgas/window"
)

// TestCallsBehindAFailedPut: a put that has failed is told to who calls a function of its target next, or by a flush, and not to those whose answers go there: they would wait for ever.
func TestCallsBehindAFailedPut(t *testing.T) {
	for _, over := range []string{"soft", "tcp"} {
		t.Run(over, func(t *testing.T) {
			pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Over: over}, func(ctx context.Context, w *pgas.World) error {
				s := rpc.New(w.Team())
				twice := rpc.Handle(s, "twice", func(_ context.Context, _ int, x int) (int, error) { return 2 * x, nil })
				d, err := window.NewDynamic[int](ctx, w.Team())
				if err != nil {
					return err
				}
				refs, err := window.Allocate[window.Ref](ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				if err := s.Start(ctx); err != nil {
					return err
				}
				var ref window.Ref
				if w.Rank() == 1 {
					if ref, err = d.Alloc(100); err == nil {
						err = errors.Join(refs.Put(0, 0, []window.Ref{ref}), refs.Flush(0))
					}
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				var gone *window.Window[int]
				if w.Rank() == 0 {
					gone, err = d.Reach(refs.Local()[0])
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				if w.Rank() == 1 {
					err = d.Detach(ref)
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				if w.Rank() == 0 {
					require.NoError(t, gone.Put(1, 0, make([]int, 100)))
					require.NoError(t, refs.Get(1, 0, make([]window.Ref, 1)), "it comes back when the put has failed")
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 1 {
					for x := range 10 {
						got, err := twice.Call(ctx, 0, x)
						require.NoError(t, err)
						require.Equal(t, 2*x, got)
					}
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 0 {
					_, err := twice.Call(ctx, 1, 1)
					require.ErrorContains(t, err, "refused the access")
					got, err := twice.Call(ctx, 1, 1)
					require.NoError(t, err, "it was told")
					require.Equal(t, 2, got)
					if err := errors.Join(gone.Flush(1), gone.Free(ctx)); err != nil {
						return err
					}
				}
				return errors.Join(s.Close(ctx), refs.Free(ctx), d.Free(ctx))
			})
		})
	}
}
