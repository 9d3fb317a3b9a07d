package window_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/firehose"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/sim"
	"gopgas/window"
)

// sweep is what rounds through more of a peer's memory than its share of firehoses covers have met.
type sweep struct {
	firehose.HolderStats
	calls time.Duration // within the library
}

// sweepBuckets has rank 0 put and flush a word in each of so many places of rank 1's memory by turns, with computation in
// between, under a policy, in virtual time. The first rounds do not count.
func sweepBuckets(t *testing.T, policy string) (out sweep) {
	const words, places, learn, rounds = 4 << 20, 160, 6, 10 // 32 MiB
	c := pgastest.SimConfig{Ranks: 2, Reg: policy, Machine: sim.Config{MaxPinned: 6 << 20}, Seed: 1}
	pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Create(ctx, w.Team(), make([]uint64, words))
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			var before firehose.HolderStats
			for round := range learn + rounds {
				if round == learn {
					before, _ = w.Team().Engine().Firehoses()
				}
				for i := range places {
					pgastest.Compute(w, 200*time.Microsecond)
					begun := w.Elapsed()
					if err := win.Put(1, i*(words/places), []uint64{uint64(round)}); err != nil {
						return err
					}
					if err := win.Flush(1); err != nil {
						return err
					}
					if round >= learn {
						out.calls += w.Elapsed() - begun
					}
				}
			}
			after, _ := w.Team().Engine().Firehoses()
			out.HolderStats = after
			out.Hits, out.Misses, out.Joins, out.Ahead = after.Hits-before.Hits, after.Misses-before.Misses, after.Joins-before.Joins, after.Ahead-before.Ahead
		}
		if err := win.Fence(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			for i := range places {
				require.EqualValues(t, learn+rounds-1, win.Local()[i*(words/places)])
			}
		}
		return win.Free(ctx)
	})
	return out
}

// TestFirehosesAhead: a program that walks through more buckets than its share holds misses each time. Where uses are
// predicted the helper has asked for the next bucket before: the misses leave the critical path, and the calls are shorter.
func TestFirehosesAhead(t *testing.T) {
	demand, ahead := sweepBuckets(t, "leavepinned"), sweepBuckets(t, "predictive")
	t.Logf("on demand: %d hits, %d misses, %v in calls", demand.Hits, demand.Misses, demand.calls)
	t.Logf("ahead: %d hits, %d joins, %d misses, %d asked ahead, %v in calls", ahead.Hits, ahead.Joins, ahead.Misses, ahead.Ahead, ahead.calls)
	require.Zero(t, demand.Ahead)
	require.Greater(t, demand.Misses, 9*demand.Hits, "the walk is too short for this test")
	require.Less(t, ahead.Misses, demand.Misses/4)
	require.Positive(t, ahead.Ahead)
	require.Less(t, ahead.calls, demand.calls*3/4)
}
