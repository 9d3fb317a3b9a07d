package pgsync_test

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

// endsWhenAsked is a context that ends when it has been asked so many times whether it has.
type endsWhenAsked struct {
	context.Context
	mu   sync.Mutex // guards what follows
	left int
	done chan struct{}
}

func (c *endsWhenAsked) ask() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.done)
	}
	if c.left > 0 {
		return nil
	}
	return context.Canceled
}

func (c *endsWhenAsked) Done() <-chan struct{} { _ = c.ask(); return c.done }
func (c *endsWhenAsked) Err() error            { return c.ask() }

// TestSurvivorsCalledAgain: wherever a member's context ends in Survivors, its next call brings that to its end, and all have the same team.
func TestSurvivorsCalledAgain(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			var left int
			pgastest.RunConfig(t, 3, p.Config, func(ctx context.Context, w *pgas.World) error {
				for n, whole := 1, make([]byte, 1); whole[0] == 0; n++ {
					call := ctx
					if w.Rank() == 1 {
						call = &endsWhenAsked{Context: ctx, left: n, done: make(chan struct{})}
					}
					team, err := w.Team().Survivors(call)
					if w.Rank() == 1 && errors.Is(err, context.Canceled) {
						left++
						team, err = w.Team().Survivors(ctx)
					} else if w.Rank() == 1 {
						whole[0] = 1
					}
					if err != nil {
						return err
					}
					if err := team.Barrier(ctx); err != nil {
						return err
					}
					if err := pgsync.Broadcast(ctx, team, whole, 1); err != nil {
						return err
					}
					if err := team.Free(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			require.Positive(t, left)
		})
	}
}

// TestCloseAfterSurvivorsLeft: wherever a member's context ends in a second call of Survivors, and it closes its world instead of calling again, nobody waits for it.
func TestCloseAfterSurvivorsLeft(t *testing.T) {
	const dead = 2
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 10 * time.Second
			calls := 0 // that were left
			for left := true; left; {
				left = false
				var ready sync.WaitGroup
				ready.Add(4)
				pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
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
					if err != nil {
						return err
					}
					call := ctx
					if w.Rank() == 1 {
						call = &endsWhenAsked{Context: ctx, left: calls + 1, done: make(chan struct{})}
					}
					team, err = w.Team().Survivors(call)
					if w.Rank() == 1 && errors.Is(err, context.Canceled) {
						left = true
						calls++
						return nil
					}
					if err == nil {
						err = team.Barrier(ctx)
					}
					// Otherwise it has closed its world before they agreed, or when they had agreed on a team with it.
					if err != nil && !errors.Is(err, pgsync.ErrMismatch) {
						require.ErrorIs(t, err, pgas.ErrPeerGone)
					}
					return nil
				})
				if t.Failed() {
					return
				}
			}
			require.Positive(t, calls)
		})
	}
}

// TestSurvivorsMeetClose: where a member closes its world while the others call Survivors, whether it has left that or never called it, of all ranks or of a team
// of survivors, nobody waits for anybody: who has no team gets ErrMismatch, or learns that the member is gone, and so does who has one that it is in.
func TestSurvivorsMeetClose(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		for name, dead := range map[string]int{"of all": -1, "of survivors": 2} {
			t.Run(p.Name+"/"+name, func(t *testing.T) {
				p.TimeLimit = 10 * time.Second
				missed := 0 // calls of the others that met the end of a world
				for asked, left := 0, true; left; asked = max(1, 2*asked) {
					left = asked == 0
					var ready sync.WaitGroup
					ready.Add(4)
					var mu sync.Mutex
					pgastest.Errors(t, 4, p.Config, func(ctx context.Context, w *pgas.World) error {
						ready.Done()
						ready.Wait()
						if w.Rank() == dead {
							return errors.New("made up")
						}
						team := w.Team()
						if dead >= 0 {
							require.ErrorIs(t, w.Barrier(ctx), pgas.ErrPeerGone)
							var err error
							if team, err = team.Survivors(ctx); err != nil {
								return err
							}
						}
						call := ctx
						if w.Rank() == 1 {
							if asked == 0 {
								return nil
							}
							call = &endsWhenAsked{Context: ctx, left: asked, done: make(chan struct{})}
						}
						made, err := team.Survivors(call)
						if w.Rank() == 1 && errors.Is(err, context.Canceled) {
							left = true
							return nil
						}
						if err == nil {
							err = made.Barrier(ctx)
						}
						if err != nil && !errors.Is(err, pgas.ErrPeerGone) {
							require.ErrorIs(t, err, pgsync.ErrMismatch)
							mu.Lock()
							missed++
							mu.Unlock()
						}
						return nil
					})
					if t.Failed() {
						return
					}
				}
				require.Positive(t, missed)
			})
		}
	}
}

// TestSurvivorsAfterABarrierThatWasLeft: who has left a barrier, and calls Survivors, does not come to the team's collectives any more: the others, in that barrier or behind it in another
// one, learn that and come, too.
func TestSurvivorsAfterABarrierThatWasLeft(t *testing.T) {
	pgastest.Each(t, []int{2, 3, 5}, func(ctx context.Context, w *pgas.World, t *testing.T) error {
		team, err := w.Team().Split(ctx, 0, 0)
		if err != nil {
			return err
		}
		left, err := pgsync.NewSignals(ctx, w.Team(), 1) // of another team: nobody is in a call of this one yet
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			require.ErrorIs(t, team.Barrier(ended), context.Canceled)
			for m := 1; m < w.Size(); m++ {
				if err := left.Signal(0).Set(m, 1); err != nil {
					return err
				}
			}
		} else {
			if _, err := left.Signal(0).WaitUntil(ctx, pgsync.Equal, 1); err != nil {
				return err
			}
			if err := team.Barrier(ctx); err != nil { // rank 0 may have told all that it takes before it left
				require.ErrorIs(t, err, pgsync.ErrAbandoned)
			}
			require.ErrorIs(t, team.Barrier(ctx), pgsync.ErrAbandoned)
		}
		all, err := team.Survivors(ctx)
		if err != nil {
			return err
		}
		require.Equal(t, w.Size(), all.Size())
		return all.Barrier(ctx)
	})
}
