package rpc

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// untilStarted is a context that ends when a service of its goroutine serves.
type untilStarted struct {
	context.Context
	s *Service
}

func (c untilStarted) Err() error {
	if c.s.started {
		return context.Canceled
	}
	return nil
}

// TestStartThatWasLeft: where its context ends in its last part, in which the members wait for each other, it is called again, and goes on.
func TestStartThatWasLeft(t *testing.T) {
	pgastest.EachReal(t, []int{2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		left, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		s := New(w.Team())
		add := HandleInTurn(s, "add", func(_ context.Context, _ int, x int) (int, error) { return x + 1, nil })
		if w.Rank() == 0 {
			for range 2 {
				require.ErrorIs(t, s.Start(untilStarted{context.Background(), s}), context.Canceled)
			}
			require.NoError(t, left.Signal(0).Set(1, 1))
			require.NoError(t, s.Start(ctx))
		} else {
			require.NoError(t, startBehind(ctx, s, left.Signal(0)))
		}
		v, err := add.Call(ctx, 1-w.Rank(), 1)
		require.NoError(t, err)
		require.Equal(t, 2, v)
		require.ErrorIs(t, s.Start(ctx), pgsync.ErrState)
		require.NoError(t, s.Close(ctx))
		return left.Free(ctx)
	})
}

// startBehind is Start of a member that comes to its last part when others have left that.
func startBehind(ctx context.Context, s *Service, left pgsync.Signal) (err error) {
	if err := s.team.Alike(ctx, "start service", "a service of "+strings.Join(s.kinds, ", "), nil); err != nil {
		return err
	}
	s.ring = ringWords(s.team.Size())
	if s.rings, err = window.Allocate[uint64](ctx, s.team, doorWords+s.team.Size()*s.ring); err != nil {
		return err
	}
	if s.marks, err = pgsync.NewSignals(ctx, s.team, 2*s.team.Size()); err != nil {
		return err
	}
	s.open()
	if _, err := left.WaitUntil(ctx, pgsync.Equal, 1); err != nil {
		return err
	}
	return s.meet(ctx, "start service")
}
