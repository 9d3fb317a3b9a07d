package races_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
	"gopgas/window"
)

// TestFenceThatEndsEarly: a fence that ends with its context, before what it flushes is there, has flushed nothing.
func TestFenceThatEndsEarly(t *testing.T) {
	if detector {
		t.Skip("Go's race detector sees the race too")
	}
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{Jitter: 20 * time.Millisecond, Seed: 4}}
	told := make(chan bool, 2) // by rank 0, past the check
	said := underCheck(t, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		try := func() bool { // ends as it should where the put was not there when the fence ended
			require.NoError(t, win.Put(1, 0, one))
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			require.ErrorIs(t, win.Fence(short), context.DeadlineExceeded)
			return win.FlushContext(short, 1) != nil
		}
		for early := false; !early; {
			if w.Rank() == 0 {
				early = try()
				told <- early
				told <- early
			} else {
				early = <-told
			}
			if !early { // the fence may have been half way
				if err := win.Fence(ctx); err != nil {
					return err
				}
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			err = win.CheckRead(0, 1)
		}
		return errors.Join(err, win.Fence(ctx), win.Free(ctx))
	})
	require.Contains(t, said, "race check: 1 race found", "%q", said)
}
