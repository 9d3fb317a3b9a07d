package window_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// endsAt is a context that ends when it is asked and ready says so; then atEnd is called first. One goroutine asks.
type endsAt struct {
	context.Context
	ready func() bool
	atEnd func()
	ended bool
	done  chan struct{}
}

func (c *endsAt) Done() <-chan struct{} { return c.done }

func (c *endsAt) Err() error {
	if !c.ended && !c.ready() {
		return nil
	}
	if !c.ended {
		c.atEnd()
		c.ended = true
		close(c.done)
	}
	return context.Canceled
}

// TestCreateLeftInItsLastExchange: one member's context ends in it when the other one comes through. That one has no window either: it would put into memory that the first one gives back, which
// would wait for it to let go of that.
func TestCreateLeftInItsLastExchange(t *testing.T) {
	const words = 1 << 20
	for _, p := range pgastest.Fabrics() {
		if p.Name != "nic-good" && p.Name != "nic-tight" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			p.TimeLimit = 20 * time.Second
			left, over := make(chan struct{}), make(chan struct{})
			var other *pgas.World // rank 0
			pgastest.RunConfig(t, 2, p.Config, func(ctx context.Context, w *pgas.World) error {
				team, err := w.Team().Split(ctx, 0, w.Rank())
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					other = w
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
				if w.Rank() == 0 {
					win, err := window.Create(ctx, team, make([]int64, words))
					if err == nil {
						err = win.Put(1, 0, []int64{1})
					}
					close(over)
					require.ErrorIs(t, err, pgsync.ErrAbandoned)
					return r.Wait(ctx)
				}
				waits := func(op string, peer int) bool {
					return slices.ContainsFunc(other.Waits(), func(v pgas.Wait) bool { return v.Op == op && v.Peer == peer })
				}
				from := time.Now().Add(20 * time.Millisecond) // rank 1 is in the last exchange then
				short := &endsAt{
					Context: ctx, done: make(chan struct{}),
					ready: func() bool { return time.Now().After(from) && waits("exchange", -1) },
					atEnd: func() {
						close(left)
						for k := 0; k < 500 && !waits("barrier", 1); k++ {
							select {
							case <-over:
								return
							case <-time.After(time.Millisecond):
							}
						}
					},
				}
				_, err = window.Create(short, team, make([]int64, words))
				require.ErrorIs(t, err, context.Canceled)
				return r.Wait(ctx)
			})
		})
	}
}
