package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// leave makes a barrier of team on this rank that ends with its context, and tells the others with a signal when that has happened.
func leave(ctx context.Context, team *pgsync.Team, gate pgsync.Signal) error {
	short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
	defer cancel()
	if err := team.Barrier(short); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the barrier was not left: %w", err)
	}
	for m := range team.Size() {
		if err := gate.Add(m, 1); err != nil {
			return err
		}
	}
	return nil
}

// TestStartAfterABarrierThatWasLeft: a started call brings the barrier to its end, as a blocking one does, also where the others are in it still.
func TestStartAfterABarrierThatWasLeft(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		for round := range uint64(6) { // more than there are lanes
			if w.Rank() == 0 {
				err = leave(ctx, w.Team(), gate.Signal(0))
			} else if _, err = gate.Signal(0).WaitUntil(ctx, pgsync.Greater, round); err == nil {
				err = w.Barrier(ctx)
			}
			if err != nil {
				return err
			}
			sum := []int{w.Rank()}
			r := w.Team().Start(func(ctx context.Context, team *pgsync.Team) error {
				return pgsync.AllReduce(ctx, team, sum, sum, pgsync.Sum)
			})
			if round%2 == 0 {
				if err := w.Barrier(ctx); err != nil { // another one
					return err
				}
			}
			if err := r.Wait(ctx); err != nil {
				return err
			}
			require.Equal(t, w.Size()*(w.Size()-1)/2, sum[0])
		}
		return gate.Free(ctx)
	}, 2, 3, 5)
}

// TestBarrierLeftInAStartedCall: where its function does not mind, it has the others come through the barrier all the same.
func TestBarrierLeftInAStartedCall(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		r := w.Team().Start(func(ctx context.Context, team *pgsync.Team) error {
			if w.Rank() == 0 {
				return leave(ctx, team, gate.Signal(0))
			}
			if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
				return err
			}
			return team.Barrier(ctx)
		})
		return errors.Join(r.Wait(ctx), w.Barrier(ctx), gate.Free(ctx))
	}, 2, 3, 5)
}

// TestErrorOfAStartedCallIsItsOwn: the function of one member fails with an error of something else, which others of the team have not heard of, whatever it wraps.
func TestErrorOfAStartedCallIsItsOwn(t *testing.T) {
	for _, of := range []error{pgas.ErrClosed, pgas.ErrPeerGone, pgsync.ErrMismatch, pgsync.ErrAbandoned} {
		t.Run(of.Error()[:9], func(t *testing.T) {
			pgastest.RunConfig(t, 3, pgastest.Config{TimeLimit: 20 * time.Second}, func(ctx context.Context, w *pgas.World) error {
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				err = team.Start(func(ctx context.Context, team *pgsync.Team) error {
					if w.Rank() == 1 {
						return fmt.Errorf("made up: %w", of)
					}
					return team.Barrier(ctx)
				}).Wait(ctx)
				if w.Rank() == 1 {
					require.ErrorIs(t, err, of)
				} else {
					require.ErrorIs(t, err, pgsync.ErrAbandoned)
					require.ErrorContains(t, err, "rank 1 left a started call")
				}
				require.ErrorIs(t, team.Barrier(ctx), pgsync.ErrAbandoned)
				return w.Barrier(ctx)
			})
		})
	}
}

// TestViewOfAStartedCall: its team is not freed nor drained by the call itself, which would wait for its own end, and is of no use behind that.
func TestViewOfAStartedCall(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		var kept *pgsync.Team
		r := w.Team().Start(func(ctx context.Context, team *pgsync.Team) error {
			kept = team
			require.ErrorIs(t, team.Free(ctx), pgsync.ErrState)
			require.ErrorIs(t, team.Drain(ctx), pgsync.ErrState)
			return team.Barrier(ctx)
		})
		if err := r.Wait(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 { // nobody else makes these calls
			one := []int{1}
			require.ErrorIs(t, kept.Barrier(ctx), pgsync.ErrState)
			require.ErrorIs(t, pgsync.AllReduce(ctx, kept, one, one, pgsync.Sum), pgsync.ErrState)
		}
		return w.Barrier(ctx)
	}, 1, 3)
}

// TestStartedCallOnItsOwnTeam: a started call whose calls go to the team that it was started on, as those of an array of that do, comes to one that waits for the started
// call's end. It is told so, and does not wait for itself; members that are behind it hear that it has left.
func TestStartedCallOnItsOwnTeam(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, team *pgsync.Team) error{
		"barrier": func(ctx context.Context, team *pgsync.Team) error { return team.Barrier(ctx) },
		"data": func(ctx context.Context, team *pgsync.Team) error {
			return pgsync.AllReduce(ctx, team, []int{0}, []int{1}, pgsync.Sum)
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				calls := 0
				err = team.Start(func(ctx context.Context, _ *pgsync.Team) error {
					for ; calls < 10; calls++ {
						if err := call(ctx, team); err != nil {
							return err
						}
					}
					return nil
				}).Wait(ctx)
				if w.Size() == 1 || !errors.Is(err, pgsync.ErrAbandoned) {
					require.ErrorIs(t, err, pgsync.ErrState)
					require.Equal(t, 3, calls)
				}
				return w.Barrier(ctx)
			}, 1, 3)
		})
	}
}
