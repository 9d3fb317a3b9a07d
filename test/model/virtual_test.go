package model

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/sim"
)

// TestTracesInVirtualTime is the same over simulated NICs, good ones and such that delay what travels or let it overtake, with a random
// size from which transfers are large.
func TestTracesInVirtualTime(t *testing.T) {
	first := firstSeed()
	for name, f := range map[string]sim.Faults{
		"good": {}, "late": {Delay: 20 * time.Microsecond}, "unordered": {Delay: 20 * time.Microsecond, Reorder: true},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range traces() {
				if raceEnabled && i == 2 {
					break // nothing is concurrent there
				}
				s := first + i
				rnd := rand.New(rand.NewPCG(s, 0x51))
				c := pgastest.SimConfig{
					Ranks: []int{1, 2, 3, 5}[rnd.IntN(4)], Mapped: rnd.IntN(4) == 0, RanksPerNode: 1 + rnd.IntN(3), Seed: s, Faults: f,
					RegLeast: 1 + rnd.Int64N(400), Eager: []string{"auto", "inline", "bounce", "bypass"}[rnd.IntN(4)],
				}
				pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error { return trace(ctx, w, s) })
				if t.Failed() {
					t.Fatalf("%+v: replay with -model.seed=%d", c, first)
				}
			}
		})
	}
}
