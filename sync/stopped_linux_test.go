package pgsync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestOfStopped: who waits for a member whose process was stopped, and asks whether it closes its world or what it says to an agreement, waits no longer than its context lasts.
func TestOfStopped(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, team *pgsync.Team) error{
		"barrier":   func(ctx context.Context, team *pgsync.Team) error { return team.Barrier(ctx) },
		"survivors": func(ctx context.Context, team *pgsync.Team) error { _, err := team.Survivors(ctx); return err },
	} {
		for _, nic := range []string{"tcp", "soft"} {
			t.Run(name+"/"+nic, func(t *testing.T) {
				env := []string{"PGAS_LOCAL=off", "PGAS_TRANSPORT=" + nic}
				pgastest.RunProcsConfig(t, 2, pgastest.Procs{Env: env}, func(ctx context.Context, w *pgas.World) error {
					team, err := w.Team().Split(ctx, 0, w.Rank())
					if err != nil {
						return err
					}
					pids := make([]int64, 2)
					if err := pgsync.AllGather(ctx, team, pids, []int64{int64(os.Getpid())}); err != nil {
						return err
					}
					if w.Rank() == 1 {
						if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
							return err
						}
						return w.Barrier(ctx) // its threads do not stop all at once: one that went on from here would close the world
					}
					goOn := func() error { return unix.Kill(int(pids[1]), unix.SIGCONT) }
					defer func() { _ = goOn() }()
					require.Eventually(t, func() bool {
						stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pids[1]))
						return err == nil && bytes.Contains(stat, []byte(") T "))
					}, 10*time.Second, time.Millisecond)
					time.AfterFunc(8*time.Second, func() { _ = goOn() }) // who waits longer goes on then
					for range 3 {
						short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
						began := time.Now()
						err := wait(short, team)
						cancel()
						if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 2*time.Second {
							return fmt.Errorf("it ended after %v: %w", took, err)
						}
					}
					require.NoError(t, goOn())
					return w.Barrier(ctx)
				})
			})
		}
	}
}
