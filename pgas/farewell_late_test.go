package pgas_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestSurvivorsTooLate: members that call Survivors when another one has closed its world get an error, and close theirs in good order.
func TestSurvivorsTooLate(t *testing.T) {
	for range 20 {
		var ready sync.WaitGroup
		ready.Add(4)
		errs := pgastest.Errors(t, 4, pgastest.Config{TimeLimit: 20 * time.Second}, func(ctx context.Context, w *pgas.World) error {
			ready.Done()
			ready.Wait()
			if w.Rank() == dead {
				return errors.New("made up")
			}
			require.ErrorIs(t, w.Barrier(ctx), pgas.ErrPeerGone)
			team, err := w.Team().Survivors(ctx)
			if err == nil {
				err = team.Barrier(ctx)
			}
			if err != nil || w.Rank() == 1 {
				return err
			}
			_, err = w.Team().Survivors(ctx)
			require.ErrorIs(t, err, pgsync.ErrMismatch)
			if w.Rank() == 3 { // the others come to the last agreement before it
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
		for r, err := range errs {
			if r != dead {
				require.NoError(t, err, "rank %d", r)
			}
		}
	}
}
