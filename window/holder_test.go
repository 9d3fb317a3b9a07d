package window_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestLockIsWaitedForByHolder: who waits for a member's lock is listed with the rank that holds it, which need not be that member.
func TestLockIsWaitedForByHolder(t *testing.T) {
	held, seen := make(chan struct{}), make(chan struct{})
	pgastest.Run(t, 3, func(ctx context.Context, w *pgas.World) error {
		win, err := window.AllocateConfig[int64](ctx, w.Team(), 1, window.Config{Epochs: true})
		if err != nil {
			return err
		}
		switch w.Rank() {
		case 1:
			if err := win.Lock(ctx, 0, window.LockExclusive); err != nil {
				return err
			}
			close(held)
			select {
			case <-seen:
			case <-time.After(30 * time.Second):
			}
			if err := win.Unlock(0); err != nil {
				return err
			}
		case 2:
			select {
			case <-held:
			case <-time.After(30 * time.Second):
			}
			got := make(chan error, 1)
			go func() { got <- win.Lock(ctx, 0, window.LockShared) }()
			func() {
				defer close(seen)
				require.Eventually(t, func() bool {
					return slices.ContainsFunc(w.Waits(), func(x pgas.Wait) bool { return x.Op == "lock" && x.Peer == 1 })
				}, 20*time.Second, time.Millisecond)
			}()
			if err := <-got; err != nil {
				return err
			}
			if err := win.Unlock(0); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
}
