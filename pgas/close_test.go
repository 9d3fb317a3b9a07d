package pgas_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// TestWhoClosesIsThere: a rank that has nothing more to do, and waits in Close, is reached by all calls of the others.
func TestWhoClosesIsThere(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			pgastest.RunConfig(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
				x, err := newOneSided(ctx, w)
				if err != nil || w.Rank() != 1 {
					return err
				}
				time.Sleep(5 * time.Millisecond)
				for _, c := range slices.Concat(x.calls, x.alive) {
					if err := c.call(); err != nil {
						return errors.Join(errors.New(c.name), err)
					}
				}
				return nil
			})
		})
	}
}

// TestSurvivorsClose: where the program has gone on without all that are gone, Close waits for the others and returns nil; where it has not, it
// returns the error of the death, to all.
func TestSurvivorsClose(t *testing.T) {
	for name, c := range map[string]struct {
		goOn bool
		last int // a rank that dies when the others go on; -1: none
	}{"they go on": {true, -1}, "they do not": {false, -1}, "another one dies": {true, 1}} {
		for _, p := range pgastest.PathsOf(t) {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				p.TimeLimit = 20 * time.Second
				var ready, on, made sync.WaitGroup
				ready.Add(4)
				on.Add(3)
				made.Add(3)
				errs := pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
					ready.Done()
					ready.Wait()
					if w.Rank() == dead {
						return errors.New("made up")
					}
					err := w.Barrier(ctx)
					require.ErrorIs(t, err, pgas.ErrPeerGone)
					on.Done()
					on.Wait() // all know of the first death
					if !c.goOn {
						return nil
					}
					team, err := w.Team().Survivors(ctx)
					if err != nil {
						return err
					}
					win, err := window.Allocate[int](ctx, team, 10)
					made.Done()
					made.Wait() // no call of anybody's is ended by the second death
					switch {
					case err != nil || w.Rank() == 0:
						return err // the first one has nothing more to do
					case w.Rank() == c.last:
						return errors.New("made up")
					case c.last >= 0:
						return nil
					}
					time.Sleep(20 * time.Millisecond)
					return errors.Join(win.Put(0, w.Rank(), []int{1}), win.Flush(0))
				})
				for r, err := range errs {
					switch {
					case r == dead || r == c.last:
						require.ErrorContains(t, err, "made up")
					case c.goOn && c.last < 0:
						require.NoError(t, err, "rank %d", r)
					default:
						require.ErrorIs(t, err, pgas.ErrPeerGone, "rank %d", r)
						require.ErrorContains(t, err, "close (rank ", "rank %d", r)
					}
				}
			})
		}
	}
}
