package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// TestNobodySleepsBesideWhoIsBusy: where somebody has found no room and not gone yet, room that has come meanwhile is his or that of who serves, who does not sleep.
func TestNobodySleepsBesideWhoIsBusy(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		s := New(w.Team())
		hold := make(chan struct{})
		eat := HandleInTurn(s, "eat", func(context.Context, int, []byte) (struct{}, error) {
			<-hold
			return struct{}{}, nil
		})
		if err := s.Start(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			for l := &s.lanes[1]; ; {
				if err := eat.Send(ctx, 1, make([]byte, 10_000)); err != nil {
					return err
				}
				if l.waits.Load() != 0 && l.busy.CompareAndSwap(false, true) { // he has found no room
					break
				}
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		close(hold)
		if l := &s.lanes[1]; w.Rank() == 0 {
			for s.heads[1].Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			require.True(t, s.ready()) // what would have woken who serves has come and gone
			l.busy.Store(false)
			for l.waits.Load() != 0 {
				time.Sleep(time.Millisecond)
			}
		}
		return s.Close(ctx)
	})
}

// TestPiecesThatAreGivenUp: where the rest of a long message could not be brought, what is there of it is no part of the next one.
func TestPiecesThatAreGivenUp(t *testing.T) {
	pgastest.EachReal(t, []int{1, 2}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		s := New(w.Team())
		length := HandleInTurn(s, "length", func(_ context.Context, _ int, b []byte) (int, error) { return len(b), nil })
		if err := s.Start(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			l := &s.lanes[w.Size()-1]
			for _, n := range []int{100, 200_000} {
				require.True(t, l.busy.CompareAndSwap(false, true))
				var b block
				m := &message{kind: send, payload: make([]byte, 200_000)}
				require.True(t, l.room(&b, m))
				require.False(t, l.add(&b, m))
				require.NoError(t, l.bring(b)) // and the next put fails
				l.busy.Store(false)
				got, err := length.Call(ctx, w.Size()-1, make([]byte, n))
				require.NoError(t, err)
				require.Equal(t, n, got)
			}
		}
		return s.Close(ctx)
	})
}
