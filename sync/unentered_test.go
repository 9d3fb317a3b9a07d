package pgsync_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestCallLeftBehindAnother: a collective whose context ends while another goroutine of the rank is in the one before was left as any other: the others, who come to
// it, do not take this member's next call for it.
func TestCallLeftBehindAnother(t *testing.T) {
	for name, dst := range map[string]int{"call": 1, "refused": 2} {
		t.Run(name, func(t *testing.T) {
			pgastest.EachReal(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				left := signals.Signal(0)
				sum := func(dst, v int) (int, error) {
					all := make([]int, dst)
					err := pgsync.AllReduce(ctx, team, all, []int{v}, pgsync.Sum)
					return all[0], err
				}
				first := make(chan error, 1)
				if w.Rank() == 0 {
					go func() {
						_, err := sum(1, 1)
						first <- err
					}()
					for !team.Busy() {
						time.Sleep(time.Millisecond)
					}
					over, cancel := context.WithCancel(ctx)
					cancel()
					require.Error(t, pgsync.AllReduce(over, team, make([]int, dst), []int{10}, pgsync.Sum))
					for m := 1; m < w.Size(); m++ {
						if err := left.Set(m, 1); err != nil {
							return err
						}
					}
					if err := <-first; err != nil {
						require.ErrorIs(t, err, pgsync.ErrAbandoned)
					}
				} else {
					if _, err := left.WaitUntil(ctx, pgsync.Equal, 1); err != nil {
						return err
					}
					if _, err := sum(1, 1); err != nil {
						require.ErrorIs(t, err, pgsync.ErrAbandoned)
					}
					_, err := sum(1, 10)
					require.ErrorIs(t, err, pgsync.ErrAbandoned)
				}
				got, err := sum(1, 100) // on rank 0 behind one call less
				require.ErrorIs(t, err, pgsync.ErrAbandoned, "%d", got)
				return w.Barrier(ctx)
			})
		})
	}
}
