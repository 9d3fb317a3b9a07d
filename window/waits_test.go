package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestWhatALockCosts counts what goes over the NIC: a free lock is had by one atomic and given back by one, and one word is
// accumulated by the NIC alone; several, or what it has no atomic for, by a message to the target's CPU.
func TestWhatALockCosts(t *testing.T) {
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.AllocateConfig[int64](ctx, w.Team(), 4, window.Config{Epochs: true})
		if err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		const rounds = 10
		if w.Rank() == 0 {
			acc := func(n int, op window.Op) func() error {
				return func() error {
					return errors.Join(window.Accumulate(win, 1, 0, []int64{1, 1}[:n], op), win.Flush(1))
				}
			}
			for _, c := range []struct {
				name              string
				do                func() error
				atomics, messages uint64
			}{
				{"lock and unlock", func() error { return errors.Join(win.Lock(ctx, 1, window.LockExclusive), win.Unlock(1)) }, 2, 0},
				{"shared", func() error { return errors.Join(win.Lock(ctx, 1, window.LockShared), win.Unlock(1)) }, 2, 0},
				{"accumulate", acc(1, pgsync.Sum), 1, 0},
				{"accumulate two", acc(2, pgsync.Sum), 0, 1},
				{"maximum", acc(1, pgsync.Max), 0, 1},
			} {
				before := w.Stats()["loopback"]
				for range rounds {
					if err := c.do(); err != nil {
						return err
					}
				}
				after := w.Stats()["loopback"]
				require.Equal(t, rounds*c.atomics, after["atomic"].Ops-before["atomic"].Ops, c.name)
				require.Equal(t, rounds*c.messages, after["message"].Ops-before["message"].Ops, c.name)
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			require.Equal(t, []int64{2 * rounds, rounds, 0, 0}, win.Local())
		}
		return win.Free(ctx)
	})
}
