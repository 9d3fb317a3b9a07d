package pgas_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// TestDeathOfAProcessEndsEveryOneSidedCall is the same between processes, one of which is killed. The others make a team without it, with new
// windows.
func TestDeathOfAProcessEndsEveryOneSidedCall(t *testing.T) {
	for _, p := range pgastest.ProcPaths() {
		if testing.Short() && p.Name != "mapped" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			p.NoKill, p.TimeLimit = true, 30*time.Second
			r, out := pgastest.StartProcs(t, 4, p.Procs, 1, func(ctx context.Context, w *pgas.World) error {
				x, err := newOneSided(ctx, w)
				if err != nil {
					return err
				}
				farewell, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				if w.Rank() == dead {
					now := uint64(time.Now().UnixNano()) // one clock for all, near enough
					for _, r := range []int{0, 1, 3} {
						err = errors.Join(err, farewell.Signal(0).Set(r, now))
					}
					return errors.Join(err, w.Team().Engine().Quiet(), syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("alive"))
				}
				for farewell.Signal(0).Load() == 0 {
					time.Sleep(100 * time.Microsecond)
				}
				died := time.Unix(0, int64(farewell.Signal(0).Load()))
				if err := x.afterDeath(func() time.Time { return died }, soon(p.Name)); err != nil {
					return err
				}
				fmt.Println("was told")
				return goOn(ctx, w)
			})
			require.Equal(t, 137, r.Code, out)
			require.Equal(t, 3, strings.Count(out, "was told"), out)
			require.Equal(t, 3, strings.Count(out, "went on"), out)
			require.NotContains(t, out, "pgas: rank", "they end well")
			for _, rank := range []int{0, 1, 3} {
				require.Zero(t, r.Ranks[rank].Exit, out)
			}
		})
	}
}

// goOn works on a team of those who live.
func goOn(ctx context.Context, w *pgas.World) error {
	team, err := w.Team().Survivors(ctx)
	if err != nil {
		return err
	}
	win, err := window.Allocate[int64](ctx, team, 10)
	if err != nil {
		return err
	}
	for m := range team.Size() {
		if _, err := window.FetchAdd(win, m, 3, int64(team.Rank()+1)); err != nil {
			return err
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	if sum := win.Local()[3]; sum != int64(team.Size()*(team.Size()+1)/2) {
		return fmt.Errorf("%d survivors added up to %d", team.Size(), sum)
	}
	if team.Rank() > 0 { // the first one has nothing more to do, and is still there for the others
		time.Sleep(300 * time.Millisecond)
		if _, err := window.FetchAdd(win, 0, 3, 1); err != nil {
			return err
		}
		if err := errors.Join(win.Put(0, 4, []int64{1}), win.Flush(0)); err != nil {
			return err
		}
	}
	fmt.Println("went on")
	return nil
}
