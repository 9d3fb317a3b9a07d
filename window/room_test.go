package window_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/transport"
	"gopgas/window"
)

// TestNoRoomForAWindow: what no machine has memory for is refused on all members, whatever they reach each other by, and they go on.
func TestNoRoomForAWindow(t *testing.T) {
	each(t, 2, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		for _, words := range []int{1 << 42, 1<<59 - 1} {
			_, err := window.Allocate[int64](ctx, w.Team(), words)
			require.Error(t, err)
			if words == 1<<42 {
				var limit *transport.LimitError
				require.ErrorAs(t, err, &limit)
				require.Contains(t, limit.Error(), "32.0 TiB")
			}
		}
		win, err := window.Allocate[int64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		return win.Free(ctx)
	})
}
