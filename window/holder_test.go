package window_test

import (
	"context"
	"errors"
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

// TestCompleteTellsThoseWhoLive: where a target is gone Complete says so, and the others are told all the same: to them this rank has completed, and they wait for it alone.
func TestCompleteTellsThoseWhoLive(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			begun, told := make(chan struct{}), make(chan struct{})
			errs := pgastest.Errors(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				win, err := window.AllocateConfig[int32](ctx, w.Team(), 1, window.Config{Epochs: true})
				if err != nil {
					return err
				}
				if w.Rank() != 2 {
					if err := win.Post([]int{2}); err != nil {
						return err
					}
				}
				switch w.Rank() {
				case 0:
					<-begun
					return errors.New("target gone")
				case 1:
					require.NoError(t, win.Wait(ctx))
					require.EqualValues(t, 7, win.Local()[0])
					require.NoError(t, win.Start(ctx, []int{2}))
					require.NoError(t, win.Complete())
					close(told)
					return nil
				}
				err = win.Start(ctx, []int{0, 1})
				close(begun)
				if err != nil {
					return err
				}
				require.Eventually(t, func() bool { return len(w.Failed()) > 0 }, 10*time.Second, time.Millisecond)
				require.NoError(t, win.Put(1, 0, []int32{7}))
				require.ErrorIs(t, win.Complete(), pgas.ErrPeerGone)
				require.ErrorIs(t, win.Post([]int{0, 1}), pgas.ErrPeerGone)
				select {
				case <-told:
				case <-ctx.Done():
				}
				return nil
			})
			require.EqualError(t, errs[0], "target gone")
		})
	}
}
