package rpc_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
)

// TestFlushesThatWereLeft: of flushes, and a Quiesce, whose contexts end again and again while a function goes on, the member that waits for it has one goroutine, not one for each.
func TestFlushesThatWereLeft(t *testing.T) {
	pgastest.EachReal(t, []int{1, 2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const times = 200
		s := rpc.New(w.Team())
		hold := make(chan struct{})
		refuse := rpc.Handle(s, "refuse", func(context.Context, int, int) (int, error) {
			<-hold
			return 0, errDies
		})
		count := rpc.HandleInTurn(s, "count", func(context.Context, int, int) (int, error) { return 0, nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		last := w.Size() - 1
		if w.Rank() == 0 {
			require.NoError(t, refuse.Send(ctx, last, 1))
			before := runtime.NumGoroutine()
			for range times {
				require.NoError(t, count.Send(ctx, last, 1))
				ended, cancel := context.WithCancel(ctx)
				cancel()
				require.ErrorIs(t, s.Flush(ended, last), context.Canceled)
				require.ErrorIs(t, s.Quiesce(ended), context.Canceled)
			}
			_, err := count.Call(ctx, last, 1) // all have come there
			require.NoError(t, err)
			require.Less(t, runtime.NumGoroutine(), before+times/2)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		close(hold)
		if w.Rank() == 0 {
			require.ErrorIs(t, s.Flush(ctx, last), rpc.ErrCalled)
		}
		if err := s.Quiesce(ctx); err != nil {
			return err
		}
		return s.Close(ctx)
	})
}

// TestQuiesceOfMany: to know that all members have done what they were sent takes about as long as with one.
func TestQuiesceOfMany(t *testing.T) {
	took := map[int]time.Duration{}
	for _, to := range []int{1, 15} {
		pgastest.RunSim(t, pgastest.SimConfig{Ranks: 16, Seed: 1}, func(ctx context.Context, w *pgas.World) error {
			s := rpc.New(w.Team())
			note := rpc.HandleInTurn(s, "note", func(context.Context, int, int) (int, error) { return 0, nil })
			if err := s.Start(ctx); err != nil {
				return err
			}
			for m := range to {
				if w.Rank() == 0 {
					require.NoError(t, note.Send(ctx, 1+m, 1))
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			now := w.Team().Engine().Sched.Now
			begin := now()
			if err := s.Quiesce(ctx); err != nil {
				return err
			}
			if w.Rank() == 0 {
				took[to] = now() - begin
			}
			return s.Close(ctx)
		})
	}
	require.Less(t, took[15], 2*took[1], "%v", took)
}
