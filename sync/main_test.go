package pgsync_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

func TestMain(m *testing.M) { os.Exit(pgastest.Main(m)) }

type body = func(ctx context.Context, w *pgas.World, t *testing.T) error

// each runs f in worlds of ns ranks on every path, but for those that pgastest.Named.Worlds leaves out.
func each(t *testing.T, f body, ns ...int) {
	t.Helper()
	for _, p := range pgastest.PathsOf(t) {
		for _, n := range p.Worlds(ns) {
			if n > 9 && (p.Over != "" || p.Fabric.MaxPost+int(p.Fabric.Jitter) != 0) {
				continue // many ranks on a slow NIC take long and show nothing new
			}
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				p.TimeLimit = 20 * time.Second
				pgastest.RunConfig(t, n, p.Config, func(ctx context.Context, w *pgas.World) error { return f(ctx, w, t) })
			})
		}
	}
}

// upTo17 are the sizes of worlds.
func upTo17() []int {
	if raceEnabled || testing.Short() {
		return []int{1, 2, 3, 5, 8, 13} // each accesses memory in its own way
	}
	all := make([]int, 17)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// simulated runs f in virtual time. Nothing is concurrent there, and the race detector makes every switch long: it gets small
// worlds only, as does who is in a hurry, or whose machine is too small for the larger ones.
func simulated(t *testing.T, c pgastest.SimConfig, f func(ctx context.Context, w *pgas.World) error) {
	t.Helper()
	if most := 8; raceEnabled || testing.Short() || os.Getenv("PGAS_TEST_RANKS") != "" {
		c.Ranks = min(c.Ranks, most)
	}
	pgastest.RunSim(t, c, f)
}
