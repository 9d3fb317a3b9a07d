package window_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// on runs f over mapped memory and over a NIC.
func on(t *testing.T, n int, f func(ctx context.Context, w *pgas.World, t require.TestingT) error) {
	for name, c := range map[string]pgastest.Config{"mapped": {}, "nic": {NIC: true}, "counted": {Stats: true}} {
		t.Run(name, func(t *testing.T) {
			pgastest.RunConfig(t, n, c, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
		})
	}
}

func TestPutGet(t *testing.T) {
	on(t, 4, func(ctx context.Context, w *pgas.World, t require.TestingT) error {
		win, err := window.Allocate[int32](ctx, w.Team(), 100)
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % w.Size()
		if err := win.Put(next, 10, []int32{int32(w.Rank()), 2, 3}); err != nil {
			return err
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		prev := (w.Rank() + 3) % 4
		require.Equal(t, []int32{int32(prev), 2, 3}, win.Local()[10:13])
		got := make([]int32, 3)
		if err := win.Get(next, 10, got); err != nil {
			return err
		}
		require.Equal(t, []int32{int32(w.Rank()), 2, 3}, got)
		return win.Free(ctx)
	})
}
