package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestAfterMismatch: when members disagreed in a collective, later ones say what can still be done, and it can.
func TestAfterMismatch(t *testing.T) {
	over := errors.New("the test is over") // a world whose collectives are of no use is not closed in good order
	var ended sync.WaitGroup
	ended.Add(3)
	errs := pgastest.Errors(t, 3, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
		err := afterMismatch(ctx, w)
		ended.Done()
		ended.Wait() // nobody is taken for gone before
		return errors.Join(err, over)
	})
	for r, err := range errs {
		if err.Error() != over.Error() {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func afterMismatch(ctx context.Context, w *pgas.World) error {
	v := make([]int, 1+w.Rank()%2)
	if err := pgsync.AllReduce(ctx, w.Team(), v, v, pgsync.Sum); !errors.Is(err, pgsync.ErrMismatch) {
		return fmt.Errorf("no mismatch: %w", err)
	}
	one := []int{1}
	if err := pgsync.AllReduce(ctx, w.Team(), one, one, pgsync.Sum); err == nil {
		return errors.New("the team's collectives still work")
	}
	team, err := w.Team().Survivors(ctx)
	if err != nil {
		return err
	}
	if err := pgsync.AllReduce(ctx, team, one, one, pgsync.Sum); err != nil || one[0] != 3 {
		return fmt.Errorf("%d and not 3: %w", one[0], err)
	}
	return nil
}
