package pgsync_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestBarrierSeparates: no member leaves barrier k before all have entered it.
func TestBarrierSeparates(t *testing.T) {
	var entered sync.Map // test name → *[n]atomic counter
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		c, _ := entered.LoadOrStore(t.Name(), new(atomic.Int64))
		count := c.(*atomic.Int64)
		for round := 1; round <= 30; round++ {
			if (round+w.Rank())%5 == 0 {
				time.Sleep(time.Duration(w.Rank()) * 20 * time.Microsecond)
			}
			count.Add(1)
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if got, want := count.Load(), int64(round*w.Size()); got < want {
				t.Errorf("rank %d left barrier %d when %d of %d had entered", w.Rank(), round, got, want)
			}
		}
		return nil
	}, upTo17()...)
}

// TestBarrierGoesOnAfterItsContext: a barrier given up is continued by the next call, and is still one barrier.
func TestBarrierGoesOnAfterItsContext(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		for round := uint64(1); round <= 5; round++ {
			if w.Rank() == 1 {
				// Enters only when the others have given up twice.
				if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, round*uint64(w.Size()-1)); err != nil {
					return err
				}
			} else {
				for range 2 {
					short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
					err := w.Barrier(short)
					cancel()
					require.ErrorIs(t, err, context.DeadlineExceeded)
					var oe *pgas.OpError
					require.ErrorAs(t, err, &oe)
				}
				if err := gate.Signal(0).Add(1, 1); err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			sum := []int{1}
			if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil { // the team is whole
				return err
			}
			require.Equal(t, w.Size(), sum[0])
		}
		return gate.Free(ctx)
	}, 2, 3, 5)
}

// TestDataAfterABarrierThatWasLeft: another collective first brings the barrier to its end.
func TestDataAfterABarrierThatWasLeft(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, uint64(w.Size()-1)); err != nil {
				return err
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		} else {
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			err := w.Barrier(short)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if err := gate.Signal(0).Add(0, 1); err != nil {
				return err
			}
		}
		sum := []int{w.Rank()}
		if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil {
			return err
		}
		require.Equal(t, w.Size()*(w.Size()-1)/2, sum[0])
		return errors.Join(w.Barrier(ctx), gate.Free(ctx))
	}, 2, 3, 5)
}

// TestTeamsAtOnce: barriers and reductions of different teams by different goroutines of a rank do not meet.
func TestTeamsAtOnce(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const teams = 4
		ts := make([]*pgas.Team, teams)
		for i := range ts {
			var err error
			if ts[i], err = w.Team().Split(ctx, 0, i*w.Rank()); err != nil {
				return err
			}
		}
		errs := make([]error, teams)
		var wg sync.WaitGroup
		for i, team := range ts {
			wg.Go(func() {
				for round := range 20 {
					v := []int{round * (i + 1)}
					if errs[i] = errors.Join(team.Barrier(ctx), pgsync.AllReduce(ctx, team, v, v, pgsync.Sum)); errs[i] != nil {
						return
					}
					if v[0] != round*(i+1)*w.Size() {
						errs[i] = errors.New("another team's data")
						return
					}
				}
			})
		}
		wg.Wait()
		for _, team := range ts {
			errs = append(errs, team.Free(ctx))
		}
		return errors.Join(errs...)
	}, 3, 4)
}

// TestOthersOfAnAbandonedCollective: a member whose context ends in a collective, and that goes on without another one, is named to all
// who wait in it or come to it later; signals of the team still work, and survivors make a team of all.
func TestOthersOfAnAbandonedCollective(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, team *pgsync.Team) error{
		"allreduce": func(ctx context.Context, team *pgsync.Team) error {
			one := []int{1}
			return pgsync.AllReduce(ctx, team, one, one, pgsync.Sum)
		},
		"long allgather": func(ctx context.Context, team *pgsync.Team) error {
			return pgsync.AllGather(ctx, team, make([]int, 3<<13), make([]int, 1<<13))
		},
		"started": func(ctx context.Context, team *pgsync.Team) error {
			return team.Start(func(_ context.Context, team *pgsync.Team) error { return pgsync.Broadcast(ctx, team, []int{1}, 2) }).Wait(context.Background())
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
				signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
				if err != nil {
					return err
				}
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				mine := signals.Signal(0)
				switch w.Rank() {
				case 0:
					short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
					defer cancel()
					require.ErrorIs(t, call(short, team), context.DeadlineExceeded)
					require.NoError(t, mine.Set(2, 1))
				case 1:
					err := call(ctx, team)
					require.ErrorIs(t, err, pgsync.ErrAbandoned)
					require.ErrorContains(t, err, "rank 0 left")
				case 2:
					if _, err := mine.WaitUntil(ctx, pgsync.Equal, 1); err != nil {
						return err
					}
					require.ErrorIs(t, call(ctx, team), pgsync.ErrAbandoned)
				}
				require.ErrorIs(t, team.Barrier(ctx), pgsync.ErrAbandoned)
				if team, err = team.Survivors(ctx); err != nil {
					return err
				}
				return errors.Join(call(ctx, team), team.Barrier(ctx), w.Barrier(ctx))
			}, 3)
		})
	}
}

// TestAbandonedCollective: a data collective given up spoils the team, and every collective says so; a barrier too,
// since it would be mistaken for the one within.
func TestAbandonedCollective(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			var gaveUp, told sync.WaitGroup
			gaveUp.Add(1)
			told.Add(1)
			errs := pgastest.Errors(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				if w.Rank() == 1 {
					defer told.Done()
					gaveUp.Wait()
					buf := []int{0}
					_ = pgsync.Broadcast(ctx, w.Team(), buf, 1)
					return w.Barrier(ctx)
				}
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				err := pgsync.Broadcast(short, w.Team(), []int{1}, 1)
				gaveUp.Done()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, pgsync.Broadcast(ctx, w.Team(), []int{1}, 0), pgsync.ErrAbandoned)
				_, err = w.Team().Split(ctx, 0, 0)
				require.ErrorIs(t, err, pgsync.ErrAbandoned)
				err = w.Barrier(ctx)
				require.ErrorIs(t, err, pgsync.ErrAbandoned)
				var oe *pgas.OpError
				require.ErrorAs(t, err, &oe)
				told.Wait() // who is gone is gone, whatever it left before
				return err
			})
			require.ErrorIs(t, errs[0], pgsync.ErrAbandoned)
			require.ErrorIs(t, errs[1], pgsync.ErrAbandoned)
		})
	}
}
