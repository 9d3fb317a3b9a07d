package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	pgsync "gopgas/sync"
)

// TestStrings: what is printed for an object says what it is.
func TestStrings(t *testing.T) {
	each(t, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team := w.Team()
		lock, e1 := pgsync.NewLock(ctx, team)
		rw, e2 := pgsync.NewRWLock(ctx, team)
		counter, e3 := pgsync.NewCounter(ctx, team)
		event, e4 := pgsync.NewEvent(ctx, team)
		signals, e5 := pgsync.NewSignals(ctx, team, 3)
		last, e6 := team.Split(ctx, w.Rank()/(w.Size()-1)-1, 0) // the last rank alone
		if err := errors.Join(e1, e2, e3, e4, e5, e6); err != nil {
			return err
		}
		of := fmt.Sprintf(" of a team of %d", w.Size())
		for want, x := range map[string]any{
			fmt.Sprintf("member %d", w.Rank()) + of: team,
			"lock" + of:                             lock, "read-write lock" + of: rw, "counter" + of: counter, "event" + of: event,
			"3 signals" + of: signals, "signal 2 of 3" + of: signals.Signal(2),
			"no signal": pgsync.Signal{}, ">=": pgsync.GreaterOrEqual, "==": pgsync.Equal, "<=": pgsync.LessOrEqual, "comparison 9": pgsync.Cmp(9),
		} {
			require.Equal(t, want, fmt.Sprint(x))
		}
		if w.Rank() == w.Size()-1 {
			require.Equal(t, fmt.Sprintf("member 0 of a team of 1, rank %d of the world", w.Rank()), fmt.Sprint(last))
		} else {
			require.Equal(t, "no team", fmt.Sprint(last))
		}
		r := team.BarrierNB()
		if err := r.Wait(ctx); err != nil {
			return err
		}
		require.Equal(t, "started call, done", fmt.Sprint(r))
		for _, free := range []func(context.Context) error{lock.Free, rw.Free, counter.Free, event.Free, signals.Free} {
			if err := free(ctx); err != nil {
				return err
			}
		}
		for _, x := range []any{lock, rw, counter, event, signals, signals.Signal(0)} {
			require.Regexp(t, "^[a-z0-9 -]+, freed$", fmt.Sprint(x))
		}
		return nil
	}, 2, 3)
}
