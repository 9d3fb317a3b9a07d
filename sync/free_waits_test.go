package pgsync_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
)

// TestFreeEndsWaits: what goroutines of a rank wait for on signals, or an event, that another one frees never comes, and they are told.
func TestFreeEndsWaits(t *testing.T) {
	type object interface {
		Free(ctx context.Context) error
	}
	type waits []func(ctx context.Context) error
	made := map[string]func(ctx context.Context, w *pgas.World) (object, waits, error){
		"event": func(ctx context.Context, w *pgas.World) (object, waits, error) {
			e, err := pgsync.NewEvent(ctx, w.Team())
			wait := func(ctx context.Context) error { return e.Wait(ctx, 1) }
			return e, waits{wait, wait}, err
		},
		"signals": func(ctx context.Context, w *pgas.World) (object, waits, error) {
			s, err := pgsync.NewSignals(ctx, w.Team(), 3)
			return s, waits{
				func(ctx context.Context) error { _, err := s.Signal(1).WaitUntil(ctx, pgsync.Equal, 1); return err },
				func(ctx context.Context) error { _, _, err := s.WaitAny(ctx, pgsync.Equal, 1); return err },
				func(ctx context.Context) error { _, err := s.WaitSome(ctx, pgsync.Equal, 1); return err },
				func(ctx context.Context) error { return s.WaitAll(ctx, pgsync.Equal, 1) },
			}, err
		},
	}
	for name, made := range made {
		f := func(ctx context.Context, w *pgas.World) error {
			limit, cancel := pgastest.WithTimeout(ctx, w, 5*time.Second)
			defer cancel()
			o, waits, err := made(ctx, w)
			if err != nil {
				return err
			}
			ended := make([]atomic.Pointer[error], len(waits))
			for i, wait := range waits {
				w.Team().Engine().Sched.Go(func() {
					err := wait(limit)
					ended[i].Store(&err)
				})
			}
			if err := w.Team().Engine().Sched.Sleep(ctx, 5*time.Millisecond); err != nil { // they wait, or are about to
				return err
			}
			if err := errors.Join(o.Free(ctx), w.Team().WaitAll(ctx, len(ended), func(i int) bool { return ended[i].Load() != nil })); err != nil {
				return err
			}
			for i := range ended {
				if err := *ended[i].Load(); !errors.Is(err, pgas.ErrClosed) {
					return fmt.Errorf("wait %d has ended with %w", i, err)
				}
			}
			return nil
		}
		t.Run(name, func(t *testing.T) {
			each(t, func(ctx context.Context, w *pgas.World, _ *testing.T) error { return f(ctx, w) }, 1, 2, 3)
			t.Run("simulated", func(t *testing.T) {
				simulated(t, pgastest.SimConfig{Ranks: 8, RanksPerNode: 4, Mapped: true, Seed: 3}, f)
			})
			t.Run("checked", func(t *testing.T) {
				require.Empty(t, errors.Join(pgastest.Errors(t, 2, pgastest.Config{Check: "races"}, f)...))
			})
		})
	}
}
