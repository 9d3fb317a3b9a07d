package rpc_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
)

// TestServiceBehindTheWorld: whatever is asked of a service whose world has been closed, as by a deferred Close, is an error, and touches nothing that was given back.
func TestServiceBehindTheWorld(t *testing.T) {
	for _, p := range pgastest.ProcPaths() {
		t.Run(p.Name, func(t *testing.T) {
			r, out := pgastest.StartProcs(t, 2, p.Procs, 1, func(ctx context.Context, w *pgas.World) error {
				s := rpc.New(w.Team())
				add := rpc.HandleInTurn(s, "add", func(_ context.Context, _ int, x int) (int, error) { return x + 1, nil })
				if err := s.Start(ctx); err != nil {
					return err
				}
				pending, err := add.CallNB(ctx, 1-w.Rank(), 1)
				if err != nil {
					return err
				}
				if _, err := pending.Wait(ctx); err != nil {
					return err
				}
				if err := w.Close(ctx); err != nil {
					return err
				}
				for range 2 {
					require.ErrorIs(t, s.Close(ctx), pgas.ErrClosed)
				}
				require.ErrorIs(t, s.Quiesce(ctx), pgas.ErrClosed)
				require.ErrorIs(t, s.Flush(ctx, 0), pgas.ErrClosed)
				require.ErrorIs(t, add.Send(ctx, 1-w.Rank(), 1), pgas.ErrClosed)
				require.True(t, pending.Done())
				v, err := pending.Wait(ctx)
				require.NoError(t, err)
				require.Equal(t, 2, v)
				os.Exit(0)
				return nil
			})
			require.Equal(t, 0, r.Code, out)
		})
	}
}
