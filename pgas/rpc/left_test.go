package rpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/pgas/rpc"
	pgsync "gopgas/sync"
)

// TestQuiesceThatWasLeft: where its context ends, or that of a Close, it is called again, and goes on; the team is as before.
func TestQuiesceThatWasLeft(t *testing.T) {
	pgastest.Each(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		sum := 0
		add := rpc.HandleInTurn(s, "add", func(_ context.Context, _ int, x int) (int, error) {
			sum += x
			return sum, nil
		})
		signals, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		come := signals.Signal(0)
		if err := s.Start(ctx); err != nil {
			return err
		}
		for round, f := range []func(context.Context) error{s.Quiesce, s.Close} {
			if w.Rank() == 0 {
				for range 2 {
					short, cancel := pgastest.WithTimeout(ctx, w, 2*time.Millisecond)
					require.ErrorIs(t, f(short), context.DeadlineExceeded)
					cancel()
				}
				for m := 1; m < w.Size(); m++ {
					require.NoError(t, come.Set(m, uint64(round+1)))
				}
			} else {
				if err := add.Send(ctx, 0, 1); err != nil {
					return err
				}
				if _, err := come.WaitUntil(ctx, pgsync.Equal, uint64(round+1)); err != nil {
					return err
				}
			}
			if err := f(ctx); err != nil {
				return err
			}
		}
		if w.Rank() == 0 {
			require.Equal(t, 2*(w.Size()-1), sum)
		}
		return w.Barrier(ctx)
	})
}

// TestCloseThatWasLeft: a Close whose context ends while memory is given back goes on when it is called again, and the others, who wait for it, come to their end.
func TestCloseThatWasLeft(t *testing.T) {
	pgastest.Each(t, []int{2, 3}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		var ends context.Context // with the service
		f := rpc.Handle(s, "f", func(ctx context.Context, _ int, _ int) (int, error) {
			ends = ctx
			return 0, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		if _, err := f.Call(ctx, w.Rank(), 0); err != nil {
			return err
		}
		end := ctx
		if w.Rank() == 0 {
			end = ends
		}
		err := s.Close(end)
		_, closed := f.Call(ctx, 0, 0)
		require.ErrorIs(t, closed, pgas.ErrClosed)
		if w.Rank() == 0 && err != nil { // the others had not come as far
			require.ErrorIs(t, err, context.Cause(ends))
			err = s.Close(ctx)
		}
		if err != nil {
			return err
		}
		require.ErrorIs(t, s.Close(ctx), pgas.ErrClosed)
		return w.Barrier(ctx)
	})
}

// TestFlushThatWasLeft: an error of what was sent is not lost where the context of the flush ends first: the next one has it, or Quiesce, once.
func TestFlushThatWasLeft(t *testing.T) {
	pgastest.EachReal(t, []int{1, 2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := rpc.New(w.Team())
		hold := make(chan struct{})
		refuse := rpc.Handle(s, "refuse", func(context.Context, int, int) (int, error) {
			<-hold
			return 0, errDies
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		last := w.Size() - 1
		for _, again := range []func() error{
			func() error { return s.Flush(ctx, last) },
			func() error { return s.Quiesce(ctx) },
		} {
			if err := refuse.Send(ctx, last, 1); err != nil {
				return err
			}
			short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
			require.ErrorIs(t, s.Flush(short, last), context.DeadlineExceeded)
			cancel()
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			close(hold)
			time.Sleep(2 * time.Millisecond)
			require.ErrorIs(t, again(), rpc.ErrCalled)
			require.NoError(t, s.Flush(ctx, last))
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			hold = make(chan struct{})
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		close(hold)
		return s.Close(ctx)
	})
}
