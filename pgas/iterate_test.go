package pgas_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// TestAllFetchesAhead: while a rank computes on a piece of another one's elements the next piece is on its way. In virtual time that is the
// difference between pieces and computation by turns, and the longer of the two.
func TestAllFetchesAhead(t *testing.T) {
	const (
		each   = 64 << 10 / 8 // elements of a piece
		pieces = 40
	)
	pgastest.RunSim(t, pgastest.SimConfig{Ranks: 2}, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[uint64](ctx, w.Team(), 2*pieces*each, pgas.Block())
		if err != nil {
			return err
		}
		for i, x := range a.Mine() {
			*x = uint64(i)
		}
		if err := a.Fence(ctx); err != nil || w.Rank() != 0 {
			return err
		}
		lo, hi := a.Range(1)
		buf := make([]uint64, each)
		took := func(f func() error) time.Duration {
			began := w.Elapsed()
			require.NoError(t, f())
			return w.Elapsed() - began
		}
		byGets := func(work time.Duration) func() error {
			return func() error {
				for at := lo; at < hi; at += each {
					if err := a.Get(at, buf); err != nil {
						return err
					}
					pgastest.Compute(w, work)
				}
				return nil
			}
		}
		iterated := func(work time.Duration) func() error {
			return func() error {
				want := uint64(lo)
				for v, err := range a.All(ctx, lo, hi) {
					if err != nil {
						return err
					}
					require.Equal(t, want, v)
					if want++; want%each == 0 {
						pgastest.Compute(w, work)
					}
				}
				return nil
			}
		}
		require.NoError(t, byGets(0)()) // what is measured first is no news then
		fetch := took(byGets(0)) / pieces
		alone := took(byGets(fetch))
		ahead := took(iterated(fetch))
		t.Logf("a piece takes %v; by turns with as long a computation all take %v, fetched ahead %v", fetch, alone, ahead)
		require.Less(t, ahead, alone*7/10)
		return nil
	})
}
