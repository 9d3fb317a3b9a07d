package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"gopgas/cmd/pgasbench/figures"
	"gopgas/pgas"
)

// seatCommand is what the figure seats starts as ranks.
func seatCommand() *cli.Command {
	return &cli.Command{
		Name: "seat", Usage: "a rank of the figure seats", Hidden: true,
		Flags: []cli.Flag{
			bytesFlag("bytes", 4<<20, ""), &cli.IntFlag{Name: "iterations", Value: 12},
			&cli.DurationFlag{Name: "compute", Value: 20 * time.Millisecond}, &cli.StringFlag{Name: "to", Value: "."},
		},
		Action: func(c *cli.Context) error {
			work := figures.SeatWork{Bytes: bytesOf(c, "bytes"), Iterations: c.Int("iterations"), Compute: c.Duration("compute")}
			if work.Bytes < 1 || work.Iterations < 1 {
				return fmt.Errorf("seat: --bytes %d, --iterations %d: want 1 or more", work.Bytes, work.Iterations)
			}
			pgas.Main(func(ctx context.Context, w *pgas.World) error {
				r, err := work.Run(ctx, w)
				if err != nil {
					return err
				}
				text, err := json.Marshal(r)
				if err != nil {
					return err
				}
				return os.WriteFile(figures.SeatFile(c.String("to"), r.Rank), text, 0o666)
			})
			return nil
		},
	}
}

// startRanks runs this program again as n ranks of a job, on so many of the cores that this process may use, with settings of the environment.
// pgasrun lies beside this program, or where programs are looked for.
func startRanks(ctx context.Context, n, cores int, settings []string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	launcher := filepath.Join(filepath.Dir(self), "pgasrun")
	if _, err := os.Stat(launcher); err != nil {
		if launcher, err = exec.LookPath("pgasrun"); err != nil {
			return errors.New("ranks are started by pgasrun, which lies neither beside pgasbench nor in a folder of PATH")
		}
	}
	cmd := exec.CommandContext(ctx, launcher, append([]string{"-n", fmt.Sprint(n), self}, args...)...)
	cmd.Env = append(os.Environ(), settings...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends its ranks
	cmd.WaitDelay = tidyTime / 2
	if err := onCores(cores, cmd.Start); err != nil {
		return fmt.Errorf("start %d ranks: %w", n, err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%d ranks: %w", n, err)
	}
	return nil
}
