package lock

import (
	"context"
	"errors"
	"sync/atomic"

	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// ErrState: a call that the object's state does not allow, such as the release of a lock not held.
var ErrState = errors.New("not allowed now")

// Group is the ranks that share a lock, as one of them sees them. It is the same for all locks of a team.
type Group struct {
	Engine *proto.Engine
	Ranks  []int // in the world, by member
	Me     int   // this rank's member number
	Races  *racecheck.Checker
	// WaitError is the error of a wait for rank, or for nobody in particular (-1), that ended early; nil of nil.
	WaitError func(op string, rank int, err error) error
}

// occupy waits until no other goroutine of this rank is busy with a lock.
func (g *Group) occupy(ctx context.Context, op string, busy *atomic.Bool) error {
	if busy.CompareAndSwap(false, true) {
		return nil
	}
	sp := g.Engine.Sched.Begin(ctx, sched.What{Op: op, Peer: -1}, nil)
	defer sp.End()
	for !busy.CompareAndSwap(false, true) {
		if err := sp.Step(); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	return nil
}
