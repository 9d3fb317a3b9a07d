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

// lateEnd is a context that has ended when it is asked behind a time, once atEnd has returned.
type lateEnd struct {
	context.Context
	from  time.Time
	atEnd func()
	once  sync.Once
	done  chan struct{}
}

func (c *lateEnd) Done() <-chan struct{} { return c.done }

func (c *lateEnd) Err() error {
	if time.Now().Before(c.from) {
		return nil
	}
	c.once.Do(func() { c.atEnd(); close(c.done) })
	return context.Canceled
}

// TestSplitLeftInItsLastExchange: one member's context ends in it when the other one has come through it already, and has the new team. That one does not wait there for a member that has none.
func TestSplitLeftInItsLastExchange(t *testing.T) {
	for _, p := range pgastest.PathsOf(t) {
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			left, has := make(chan struct{}), make(chan struct{})
			pgastest.RunConfig(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				// Rank 0 comes to the last exchange, whose lane is the started call's, when rank 1 is in it and its context about to end.
				r := team.Start(func(context.Context, *pgsync.Team) error {
					if w.Rank() == 0 {
						<-left
					}
					return nil
				})
				if err := team.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 1 {
					short := &lateEnd{Context: ctx, from: time.Now().Add(100 * time.Millisecond), done: make(chan struct{}), atEnd: func() { close(left); <-has }}
					_, err := team.Split(short, 0, w.Rank())
					require.ErrorIs(t, err, context.Canceled)
				} else {
					half, err := team.Split(ctx, 0, w.Rank())
					close(has)
					if err != nil {
						return err
					}
					for _, err := range []error{half.Barrier(ctx), half.Free(ctx)} {
						require.ErrorIs(t, err, pgsync.ErrAbandoned)
						require.ErrorContains(t, err, "rank 1 left the call that made this team")
					}
					_, err = half.Survivors(ctx)
					require.ErrorIs(t, err, pgsync.ErrAbandoned)
				}
				if err := r.Wait(ctx); err != nil {
					return err
				}
				team, err = team.Survivors(ctx)
				if err != nil {
					return err
				}
				half, err := team.Split(ctx, 0, -w.Rank())
				if err != nil {
					return err
				}
				return errors.Join(half.Barrier(ctx), half.Free(ctx), team.Free(ctx))
			})
		})
	}
}
