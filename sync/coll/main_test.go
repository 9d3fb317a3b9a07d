package coll_test

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

type body = func(ctx context.Context, w *pgas.World) error

// everywhere runs f in worlds of 1 to 17 ranks on every path (fewer under the race detector and with -short), the larger ones where NICs are fast, and in virtual time: 71
// ranks on nodes of their own, and 66 on nodes of 1 to 4 whose ranks map each other's memory.
func everywhere(t *testing.T, f body) {
	t.Helper()
	for _, p := range pgastest.PathsOf(t) {
		for _, n := range p.Worlds(upTo17()) {
			slow := p.Over != "" || p.Fabric.MaxPost+int(p.Fabric.Jitter)+int(p.Fabric.MaxPinned) != 0
			if slow && n > 3 && n != 9 && !raceEnabled {
				continue // nothing new, and long
			}
			t.Run(fmt.Sprintf("%s-%d", p.Name, n), func(t *testing.T) {
				p.TimeLimit = 30 * time.Second
				pgastest.RunConfig(t, n, p.Config, f)
			})
		}
	}
	for _, c := range sims() {
		if (raceEnabled || testing.Short()) && c.Ranks > 20 {
			continue // nothing is concurrent in a simulated world, and the detector makes it long
		}
		t.Run(fmt.Sprintf("simulated %d by %d", c.Ranks, c.RanksPerNode), func(t *testing.T) { pgastest.RunSim(t, c, f) })
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

// sims are worlds in virtual time.
func sims() []pgastest.SimConfig {
	return []pgastest.SimConfig{
		{Ranks: 71, Seed: 1},
		{Ranks: 66, RanksPerNode: 4, Mapped: true, Seed: 2},
		{Ranks: 7, RanksPerNode: 3, Mapped: true, Seed: 3},
	}
}

// each runs f in worlds of ns ranks on every path.
func each(t *testing.T, f func(ctx context.Context, w *pgas.World, t *testing.T) error, ns ...int) {
	t.Helper()
	pgastest.Each(t, ns, f)
}
