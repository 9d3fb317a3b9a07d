package window_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestSignalsBehindTheNIC: of a window over Go memory puts and accumulates to other processes travel by the NIC, while signals and locks of the same node are in
// mapped memory. Whoever sees the signal sees the data all the same, and whoever gets the lock what was put under it.
func TestSignalsBehindTheNIC(t *testing.T) {
	if raceEnabled {
		return // what orders two processes is out of the detector's sight, so it would report what is no race
	}
	for _, p := range slices.Concat(pgastest.ProcPaths(), pgastest.ProcNodes()) {
		t.Run(p.Name, func(t *testing.T) {
			pgastest.RunProcsConfig(t, 2, p.Procs, func(ctx context.Context, w *pgas.World) error {
				const n, rounds = 500, 30
				win, err := window.Create(ctx, w.Team(), make([]uint64, n+1))
				if err != nil {
					return err
				}
				signals, err := pgsync.NewSignals(ctx, w.Team(), 2)
				if err != nil {
					return err
				}
				lock, err := pgsync.NewLock(ctx, w.Team())
				if err != nil {
					return err
				}
				data, to := signals.Signal(0), 1-w.Rank()
				err = relay{win, data, signals.Signal(1), to, to}.run(ctx, n, rounds, func(src []uint64, round uint64) error {
					switch round % 3 {
					case 0:
						return win.PutSignal(to, 0, src, data, round)
					case 1:
						return errors.Join(win.Put(to, 0, src), data.Set(to, round))
					}
					return errors.Join(window.Accumulate(win, to, 0, src, pgsync.Replace), data.Set(to, round))
				})
				if err != nil {
					return err
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				word := make([]uint64, 1)
				for range rounds {
					if err := lock.Lock(ctx); err != nil {
						return err
					}
					err := win.Get(0, n, word)
					word[0]++
					if err = errors.Join(err, win.Put(0, n, word), lock.Unlock()); err != nil {
						return err
					}
				}
				if err := win.Fence(ctx); err != nil {
					return err
				}
				if got := win.Local()[n]; w.Rank() == 0 && got != 2*rounds {
					return fmt.Errorf("%d, want %d: updates under the lock were lost", got, 2*rounds)
				}
				return errors.Join(lock.Free(ctx), signals.Free(ctx), win.Free(ctx))
			})
		})
	}
}
