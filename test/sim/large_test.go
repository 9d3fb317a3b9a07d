package sim

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// large is the machine of the large runs: many ranks, 16 to a node. Eight bounce buffers for each rank are 512 KiB.
func large() pgastest.SimConfig {
	return pgastest.SimConfig{Ranks: many, RanksPerNode: 16, Seed: 1, Slots: 8, TimeLimit: 200e9}
}

// TestThousandRanks runs heat and isx as 1024 ranks; as fewer under the race detector, and with -short.
func TestThousandRanks(t *testing.T) {
	c := large()
	if testing.Short() {
		c.Ranks = min(c.Ranks, 256)
	}
	for name, f := range map[string]func(context.Context, *pgas.World) error{
		"heat": heat{columns: 256, rowsEach: 4, steps: 10, cell: 2}.on(c.Ranks).run,
		"isx":  isx{keysEach: 1024, buckets: 32, key: 5}.run,
	} {
		t.Run(name, func(t *testing.T) {
			r := pgastest.RunSim(t, c, f)
			t.Log("simulated, model modern (all constants assumed), seed 1: ", r)
			require.Zero(t, r.Sched.LostRings)
			require.Less(t, r.NIC.Ops(), uint64(c.Ranks*2000), "something asks everybody for everything")
		})
	}
}

// TestMemoryPerRank bounds what a rank costs beyond its bounce buffers, and that it does not grow with the square.
func TestMemoryPerRank(t *testing.T) {
	perRank := func(n int) float64 {
		c := large()
		c.Ranks, c.MeasureHeap = n, true
		r := pgastest.RunSim(t, c, func(ctx context.Context, w *pgas.World) error { return w.Barrier(ctx) })
		return float64(r.Heap) / float64(n)
	}
	most := many
	if testing.Short() {
		most = min(most, 256)
	}
	var last float64
	for n := 64; n <= most; n *= 4 {
		b := perRank(n)
		t.Logf("%d ranks: %.0f KiB each", n, b/1024)
		require.Less(t, b, 8e6)
		if last != 0 {
			require.Less(t, b, 1.6*last, "four times the ranks")
		}
		last = b
	}
}

// BenchmarkOperation is what a simulated operation costs in real time: puts of 8 bytes to the next rank, a flush for
// every 16.
func BenchmarkOperation(b *testing.B) {
	for name, ranks := range map[string]int{"2": 2, "256": 256} {
		b.Run(name, func(b *testing.B) {
			c := large()
			c.Ranks = ranks
			var ops, ns float64
			for b.Loop() {
				r := pgastest.RunSim(b, c, func(ctx context.Context, w *pgas.World) error {
					a, err := pgas.NewArray[int64](ctx, w.Team(), w.Size(), pgas.Block())
					if err != nil {
						return err
					}
					next := (w.Rank() + 1) % w.Size()
					for i := range 20000 / ranks * 16 {
						if err := a.Set(next, int64(i)); err != nil {
							return err
						}
						if i%16 == 15 {
							if err := a.Window().Flush(next); err != nil {
								return err
							}
						}
					}
					return a.Free(ctx)
				})
				ops += float64(r.NIC.Ops())
				ns += float64(r.Real.Nanoseconds())
			}
			b.ReportMetric(ns/ops, "ns/simulated-op")
		})
	}
}
