package pgsync

import (
	"context"

	"gopgas/internal/atom"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/transport"
)

// Counter is a shared 64-bit counter: the usual way to hand out tasks. It lives on member 0.
type Counter struct {
	held
	home []proto.Remote
	race *racecheck.Shelf // nil: races are not looked for
}

// counterBytes keeps what follows on another cache line.
const counterBytes = 64

// NewCounter returns a counter at 0. Collective.
func NewCounter(ctx context.Context, t *Team) (*Counter, error) {
	c := &Counter{}
	if err := c.hold(ctx, t, counterBytes+t.races.ShelfBytes(1, 0)); err != nil {
		return nil, err
	}
	c.home, c.shut = c.block.Remotes(), func() {}
	c.race = t.races.Shelf(c.home, counterBytes, 1, 0)
	return c, nil
}

// Next adds n and returns the value before: the caller owns [v, v+n).
func (c *Counter) Next(n int64) (int64, error) {
	const op = "counter"
	if c.gone.Load() {
		return 0, transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if err := c.t.e.Gone(op, c.home[0].Rank); err != nil {
		return 0, err
	}
	if n != 0 {
		c.race.Release(0, 0, racecheck.CarryDone)
	}
	v, err := c.t.e.Atomic(atom.Sum, atom.Word64(), &c.home[0], 0, uint64(n), 0)
	c.race.Acquire(0, 0)
	return int64(v), err
}

// Value returns the counter.
func (c *Counter) Value() (int64, error) { return c.Next(0) }

// Free gives the counter back. Collective.
func (c *Counter) Free(ctx context.Context) error { return c.free(ctx) }
