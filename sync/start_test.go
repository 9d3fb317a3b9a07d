package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/transport/sim"
)

// TestStartedCalls has more calls under way than there are lanes, of several kinds, beside blocking ones, and waits for them in
// another order.
func TestStartedCalls(t *testing.T) {
	rounds := 4
	if raceEnabled || testing.Short() {
		rounds = 2
	}
	f := func(ctx context.Context, w *pgas.World) error {
		team, n := w.Team(), w.Size()
		for round := range rounds {
			const calls = 9
			rs := make([]*pgsync.Request, calls)
			sums, all := make([][]int, calls), make([][]int, calls)
			for i := range rs {
				sums[i], all[i] = make([]int, 1+i*700), make([]int, n)
				rs[i] = team.Start(func(ctx context.Context, t *pgsync.Team) error {
					for j := range sums[i] {
						sums[i][j] = w.Rank() + i + j
					}
					return errors.Join(
						pgsync.AllReduce(ctx, t, sums[i], sums[i], pgsync.Sum),
						t.Barrier(ctx),
						pgsync.AllGather(ctx, t, all[i], []int{w.Rank() * (i + round)}))
				})
				if i%3 == 0 {
					v := []int{i}
					if err := pgsync.AllReduce(ctx, team, v, v, pgsync.Sum); err != nil {
						return err
					}
					if v[0] != n*i {
						return fmt.Errorf("the blocking sum is %d", v[0])
					}
				}
			}
			for i := calls - 1; i >= 0; i-- {
				if err := rs[i].Wait(ctx); err != nil {
					return err
				}
				if !rs[i].Done() {
					return errors.New("not done after Wait")
				}
				for j, v := range sums[i] {
					if v != n*(n-1)/2+n*(i+j) {
						return fmt.Errorf("call %d: sum %d is %d", i, j, v)
					}
				}
				for m, v := range all[i] {
					if v != m*(i+round) {
						return fmt.Errorf("call %d: member %d gave %d", i, m, v)
					}
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	pgastest.Each(t, []int{1, 2, 3, 5}, func(ctx context.Context, w *pgas.World, _ *testing.T) error { return f(ctx, w) })
	for _, c := range []pgastest.SimConfig{{Ranks: 20, Seed: 1}, {Ranks: 64, RanksPerNode: 8, Mapped: true, Seed: 2}} {
		t.Run(fmt.Sprintf("simulated %d", c.Ranks), func(t *testing.T) { simulated(t, c, f) })
	}
}

// TestBarrierNB: nobody's barrier is done before all have started it.
func TestBarrierNB(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			// The others have asked often before this one comes.
			if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, uint64(w.Size()-1)); err != nil {
				return err
			}
			if err := w.Team().BarrierNB().Wait(ctx); err != nil {
				return err
			}
			return gate.Free(ctx)
		}
		r := w.Team().BarrierNB()
		for range 100 {
			require.False(t, r.Done())
			runtime.Gosched()
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		err = r.Wait(short)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if err := gate.Signal(0).Add(0, 1); err != nil {
			return err
		}
		if err := r.Wait(ctx); err != nil {
			return err
		}
		return gate.Free(ctx)
	}, 2, 3, 5)
}

// TestStartedCallsOverlap: in virtual time, where computation takes as long as a reduction, both take little longer than one.
func TestStartedCallsOverlap(t *testing.T) {
	const elems = 100_000
	run := func(f func(ctx context.Context, w *pgas.World) error) time.Duration {
		return pgastest.RunSim(t, pgastest.SimConfig{Ranks: 8, Model: sim.Modern(), Seed: 4}, f).Elapsed
	}
	reduce := func(ctx context.Context, t *pgsync.Team) error {
		v := make([]float64, elems)
		return pgsync.AllReduce(ctx, t, v, v, pgsync.Sum)
	}
	alone := run(func(ctx context.Context, w *pgas.World) error { return w.Team().Start(reduce).Wait(ctx) }) // which has no room, as others have
	one := run(func(ctx context.Context, w *pgas.World) error {
		pgastest.Compute(w, alone)
		return w.Team().Start(reduce).Wait(ctx)
	})
	both := run(func(ctx context.Context, w *pgas.World) error {
		r := w.Team().Start(reduce)
		pgastest.Compute(w, alone)
		return r.Wait(ctx)
	})
	t.Logf("reduction %v; after computation %v; beside it %v", alone, one, both)
	require.Greater(t, one, 19*alone/10)
	require.Less(t, both, 13*alone/10)
}

func TestStartRefuses(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, err := w.Team().Split(ctx, 0, w.Rank())
		if err != nil {
			return err
		}
		inner := team.Start(func(ctx context.Context, v *pgsync.Team) error {
			nested := v.BarrierNB()
			require.True(t, nested.Done())
			require.ErrorIs(t, nested.Wait(ctx), pgsync.ErrState)
			_, err := pgsync.NewSignals(ctx, v, 1)
			require.ErrorIs(t, err, pgsync.ErrState)
			_, err = v.Survivors(ctx)
			require.ErrorIs(t, err, pgsync.ErrState)
			return v.Barrier(ctx)
		})
		if err := errors.Join(inner.Wait(ctx), team.Barrier(ctx), team.Free(ctx)); err != nil {
			return err
		}
		require.ErrorIs(t, team.BarrierNB().Wait(ctx), pgas.ErrClosed)
		// Who does not wait is waited for when the world closes.
		w.Team().BarrierNB()
		return nil
	}, 1, 3)
}

// TestErrorOfAStartedCall spoils the team, on which later calls say why.
func TestErrorOfAStartedCall(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, err := w.Team().Split(ctx, 0, w.Rank())
		if err != nil {
			return err
		}
		mine := errors.New("made up")
		r := team.Start(func(context.Context, *pgsync.Team) error { return mine })
		require.ErrorIs(t, r.Wait(ctx), mine)
		require.ErrorIs(t, r.Wait(ctx), mine, "again")
		err = team.Barrier(ctx)
		require.ErrorIs(t, err, pgsync.ErrAbandoned)
		require.ErrorIs(t, err, mine)
		r = team.Start(func(_ context.Context, _ *pgsync.Team) error { runtime.Goexit(); return nil })
		require.Error(t, r.Wait(ctx))
		return nil
	}, 2)
}
