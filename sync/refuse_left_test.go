package pgsync_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// TestRefusalsInARow: each is one, also where the context of the first ended before the others came to it.
func TestRefusalsInARow(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		gate, err := pgsync.NewSignals(ctx, w.Team(), 1)
		if err != nil {
			return err
		}
		refused := func(ctx context.Context) {
			require.ErrorIs(t, pgsync.Broadcast(ctx, w.Team(), []int{1}, -1), pgsync.ErrMember)
		}
		if w.Rank() == 0 {
			short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			refused(short)
			for m := 1; m < w.Size(); m++ {
				if err := gate.Signal(0).Set(m, 1); err != nil {
					return err
				}
			}
		} else {
			if _, err := gate.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
				return err
			}
			refused(ctx)
		}
		refused(ctx)
		sum := []int{1}
		err = pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum)
		return errors.Join(err, gate.Free(ctx))
	}, 2, 3)
}
