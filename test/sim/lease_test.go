package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/sim"
	"gopgas/window"
)

// TestLeasesWhereWritesOvertake: an acknowledgement of a lease that lands late does not take back what a later one has said.
func TestLeasesWhereWritesOvertake(t *testing.T) {
	const size = 300_000
	for seed := uint64(1); seed <= 20; seed++ {
		get := seed%2 == 0
		c := pgastest.SimConfig{Ranks: 2, Seed: seed, Bulk: "lease", Faults: sim.Faults{Delay: 17 * time.Microsecond, Reorder: true}}
		c.Machine.MaxPinned = 8 << 20
		r := pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Create[byte](ctx, w.Team(), bytes.Repeat([]byte{byte(w.Rank() + 1)}, size))
			rng := rand.New(rand.NewPCG(seed, uint64(w.Rank())))
			to := 1 - w.Rank()
			for i := 0; i < 60 && err == nil; i++ {
				b := make([]byte, 1+rng.IntN(size))
				at := rng.IntN(size - len(b) + 1)
				switch {
				case get:
					err = win.Get(to, at, b)
					if err == nil && (b[0] != byte(to+1) || b[len(b)-1] != byte(to+1)) {
						err = fmt.Errorf("got %d and %d", b[0], b[len(b)-1])
					}
				case i%3 == 0:
					err = errors.Join(win.Put(to, at, b), win.Flush(to))
				default:
					err = win.Put(to, at, b)
				}
			}
			return errors.Join(err, win.Free(ctx))
		})
		require.Zero(t, r.Sched.LostRings, "seed %d", seed)
	}
}
