package sched

import (
	"context"
	"time"
)

// Naps are the sleeps of one goroutine of real time that sleeps again and again, beside a program that allocates nothing: the timer is its own, where
// Sched.Sleep takes one from a pool. Make them with NewNaps.
type Naps struct{ timer *time.Timer }

// NewNaps returns naps.
func NewNaps() Naps {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return Naps{t}
}

// Sleep waits for d or until ctx ends. It allocates nothing.
func (n Naps) Sleep(ctx context.Context, d time.Duration) { n.Listen(ctx, d, nil) }

// Listen is Sleep that bell ends, too; it reports whether that has.
func (n Naps) Listen(ctx context.Context, d time.Duration, bell <-chan struct{}) (rung bool) {
	n.timer.Reset(d)
	select {
	case <-n.timer.C:
		return false
	case <-bell:
		rung = true
	case <-ctx.Done():
	}
	n.timer.Stop()
	return rung
}
