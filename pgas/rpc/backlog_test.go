package rpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
)

// TestFloodOfNothing: who sends messages without a byte to a member that takes none out waits, too, before they take much memory here.
func TestFloodOfNothing(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		const most = 100_000
		s := rpc.New(w.Team())
		hold, came := make(chan struct{}), 0
		stop := rpc.HandleInTurn(s, "stop", func(context.Context, int, struct{}) (struct{}, error) {
			<-hold
			return struct{}{}, nil
		})
		count := rpc.HandleInTurn(s, "count", func(context.Context, int, struct{}) (struct{}, error) {
			came++
			return struct{}{}, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		sent := 0
		if w.Rank() == 0 {
			require.NoError(t, stop.Send(ctx, 1, struct{}{}))
			short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			for ; sent < most; sent++ {
				if err := count.Send(short, 1, struct{}{}); err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					break
				}
			}
			require.Less(t, sent, most)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		close(hold)
		if err := s.Close(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			require.Positive(t, came)
		}
		return nil
	})
}

// TestNoCallInTurn: what a function in turn must not do does nothing: the function that it would have waited for is not called.
func TestNoCallInTurn(t *testing.T) {
	pgastest.Each(t, []int{1, 2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		called := 0
		count := rpc.HandleInTurn(s, "count", func(context.Context, int, struct{}) (struct{}, error) {
			called++
			return struct{}{}, nil
		})
		calls := rpc.HandleInTurn(s, "calls", func(ctx context.Context, from int, _ struct{}) (struct{}, error) {
			return count.Call(ctx, from, struct{}{})
		})
		flushes := rpc.HandleInTurn(s, "flushes", func(ctx context.Context, from int, _ struct{}) (struct{}, error) {
			return struct{}{}, s.Flush(ctx, from)
		})
		quiesces := rpc.HandleInTurn(s, "quiesces", func(ctx context.Context, _ int, _ struct{}) (struct{}, error) { return struct{}{}, s.Quiesce(ctx) })
		if err := s.Start(ctx); err != nil {
			return err
		}
		for m := range w.Size() {
			for _, f := range []*rpc.Func[struct{}, struct{}]{calls, flushes, quiesces} {
				_, err := f.Call(ctx, m, struct{}{})
				require.ErrorIs(t, err, rpc.ErrCalled)
				require.ErrorContains(t, err, "must not wait")
			}
		}
		if err := s.Close(ctx); err != nil {
			return err
		}
		require.Zero(t, called)
		return nil
	})
}
