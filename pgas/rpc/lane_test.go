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
