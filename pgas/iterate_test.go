package pgas_test

import (
	"context"
	"errors"
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

// TestEndedContext: what goes over many elements ends when its context has ended, also where it never waits.
func TestEndedContext(t *testing.T) {
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		a, err := pgas.NewArray[int](ctx, w.Team(), 200_000, pgas.Block())
		require.NoError(t, err)
		b, err := pgas.NewArray[int](ctx, w.Team(), 200_000, pgas.Cyclic())
		require.NoError(t, err)
		cause := errors.New("told to end")
		calls := 0
		ending := func() (context.Context, func()) {
			calls = 0
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() {
				calls++
				cancel(cause)
			}
		}

		short, end := ending()
		for _, err = range a.All(short, 0, a.Len()) {
			if err != nil {
				break
			}
			end()
		}
		require.ErrorIs(t, err, cause)
		require.Less(t, calls, a.Len())

		short, end = ending()
		require.ErrorIs(t, a.Apply(short, func(int, int) int { end(); return 0 }), cause)
		require.Less(t, calls, a.Len())

		short, end = ending()
		require.ErrorIs(t, a.Combine(short, a, b, func(int, int) int { end(); return 0 }), cause)
		require.Less(t, calls, a.Len())

		m, err := pgas.NewMatrix[int](ctx, w.Team(), 400, 500, pgas.Grid{})
		require.NoError(t, err)
		short, end = ending()
		require.ErrorIs(t, m.Apply(short, func(int, int, int) int { end(); return 0 }), cause)
		require.Less(t, calls, 400*500)

		short, end = ending()
		require.ErrorIs(t, m.Combine(short, m, m, func(int, int) int { end(); return 0 }), cause)
		require.Less(t, calls, 400*500)
		return nil
	})
}
