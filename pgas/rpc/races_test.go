package rpc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	"gopgas/window"
)

// TestCallsOrderAccesses: to the race check a call comes after what its caller did before, and its end before what the caller does afterwards.
func TestCallsOrderAccesses(t *testing.T) {
	for _, path := range []string{"mapped", "nic"} {
		t.Run(path, func(t *testing.T) {
			var said []string
			pgastest.RunConfig(t, 2, pgastest.Config{NIC: path == "nic", Check: "races", Say: func(text string) { said = append(said, text) }}, func(ctx context.Context, w *pgas.World) error {
				win, err := window.Allocate[int64](ctx, w.Team(), 4)
				if err != nil {
					return err
				}
				s := rpc.New(w.Team())
				bump := rpc.HandleInTurn(s, "bump", func(_ context.Context, _ int, i int) (int64, error) {
					win.Local()[i]++
					return win.Local()[i], nil
				})
				if err := s.Start(ctx); err != nil {
					return err
				}
				if w.Rank() == 0 {
					for i := range int64(10) {
						if err := win.Put(1, 2, []int64{i}); err != nil {
							return err
						}
						v, err := bump.Call(ctx, 1, 2)
						require.NoError(t, err)
						require.Equal(t, i+1, v)
					}
				}
				if err := s.Close(ctx); err != nil {
					return err
				}
				return win.Free(ctx)
			})
			require.Equal(t, "race check: no races found", said[len(said)-1], "%q", said)
		})
	}
}
