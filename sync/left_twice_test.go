package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// leaveTwo has rank 0 leave a barrier of team, and make call with the same context, which has ended; the others come to both after that. It returns what call returned.
func leaveTwo(ctx context.Context, w *pgas.World, team *pgsync.Team, gate pgsync.Signal, call func(ctx context.Context) error) error {
	if w.Rank() != 0 {
		if _, err := gate.WaitUntil(ctx, pgsync.Equal, 1); err != nil {
			return err
		}
		if err := team.Barrier(ctx); err != nil && !errors.Is(err, pgsync.ErrAbandoned) { // which rank 0 may have left by then for what is behind it
			return err
		}
		return call(ctx)
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
	defer cancel()
	if err := team.Barrier(short); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the barrier was not left: %w", err)
	}
	left := call(short)
	for m := 1; m < team.Size(); m++ {
		if err := gate.Set(m, 1); err != nil {
			return err
		}
	}
	return left
}

// TestMeetingsLeftBehindABarrier: where a barrier was left, and behind it another meeting, since the context had ended, the next call brings both to their end, in their order.
func TestMeetingsLeftBehindABarrier(t *testing.T) {
	for name, make := range map[string]func(ctx context.Context, team *pgsync.Team) (call func(ctx context.Context) error, err error){
		"free of signals": func(ctx context.Context, team *pgsync.Team) (func(ctx context.Context) error, error) {
			s, err := pgsync.NewSignals(ctx, team, 1)
			if err != nil {
				return nil, err
			}
			return s.Free, nil
		},
		"fence": func(ctx context.Context, team *pgsync.Team) (func(ctx context.Context) error, error) {
			win, err := window.Allocate[int](ctx, team, 1)
			if err != nil {
				return nil, err
			}
			return win.Fence, nil
		},
		"free of a window": func(ctx context.Context, team *pgsync.Team) (func(ctx context.Context) error, error) {
			win, err := window.Allocate[int](ctx, team, 1)
			if err != nil {
				return nil, err
			}
			return win.Free, nil
		},
		"wrong arguments": func(_ context.Context, team *pgsync.Team) (func(ctx context.Context) error, error) {
			return func(ctx context.Context) error {
				if err := pgsync.Broadcast(ctx, team, []int{1}, -1); !errors.Is(err, pgsync.ErrMember) {
					return err
				}
				return nil
			}, nil
		},
	} {
		for _, started := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, started %v", name, started), func(t *testing.T) {
				each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
					gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
					if err != nil {
						return err
					}
					call, err := make(ctx, w.Team())
					if err != nil {
						return err
					}
					_, before := w.HeapUsage()
					err = leaveTwo(ctx, w, w.Team(), gate.Signal(0), call)
					if errors.Is(err, context.DeadlineExceeded) && name != "free of signals" { // it may have come no further than its flush, and is called again
						err = call(ctx)
					}
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						return err
					}
					sum := []int{w.Rank()}
					next := func(ctx context.Context, team *pgsync.Team) error {
						return pgsync.AllReduce(ctx, team, sum, sum, pgsync.Sum)
					}
					if started {
						err = w.Team().Start(next).Wait(ctx)
					} else {
						err = next(ctx, w.Team())
					}
					if err != nil {
						return err
					}
					require.Equal(t, w.Size()*(w.Size()-1)/2, sum[0])
					if _, after := w.HeapUsage(); name == "free of signals" {
						require.Less(t, after, before)
					}
					return gate.Free(ctx)
				}, 2, 3)
			})
		}
	}
}

// TestDataLeftBehindABarrier: who could not begin to move data, since its context ended in the barrier before, has left that as others do, and all learn that.
func TestDataLeftBehindABarrier(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		team, err := w.Team().Split(ctx, 0, w.Rank())
		if err != nil {
			return err
		}
		err = leaveTwo(ctx, w, team, gate.Signal(0), func(ctx context.Context) error {
			sum := []int{1}
			return pgsync.AllReduce(ctx, team, sum, sum, pgsync.Sum)
		})
		want := error(pgsync.ErrAbandoned)
		if w.Rank() == 0 {
			want = context.DeadlineExceeded
		}
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, team.Barrier(ctx), pgsync.ErrAbandoned)
		team, err = team.Survivors(ctx)
		if err != nil {
			return err
		}
		return errors.Join(team.Barrier(ctx), gate.Free(ctx))
	}, 2, 3)
}
