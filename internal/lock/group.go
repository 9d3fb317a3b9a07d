package lock

import (
	"context"
	"errors"
	"fmt"
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
	// Parting begins to ask whether ranks close their worlds. What it returns waits for nothing, and is called again and again, by one goroutine at a time: it returns
	// the error that says so once that is known of a rank. nil: nobody does.
	Parting func() func(rank int) error
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

// leaver finds who closes its world with a lock in its hands, after which nobody gets that any more. The zero leaver has asked nobody.
type leaver struct {
	closes func(rank int) error
	tries  int
}

// lostBy returns an error if one of the ranks that held the lock a moment ago closes its world, as it does when all its calls are over, and holds it still, as holds
// says. Of those ranks it waits for nothing.
func (p *leaver) lostBy(g *Group, ranks []int, holds func(rank int) bool) error {
	if g.Parting == nil {
		return nil
	}
	if p.closes == nil {
		p.closes = g.Parting()
	}
	for _, rank := range ranks {
		if rank == g.Ranks[g.Me] {
			continue
		}
		if err := p.closes(rank); err != nil && holds(rank) { // else it had released the lock before
			return fmt.Errorf("it holds the lock: %w", err)
		}
	}
	return nil
}

// seldom reports at times that it is worth while to look who has the lock, to who tries again and again to get it.
func (p *leaver) seldom() bool {
	p.tries++
	return p.tries%seldomTries == 0
}

const seldomTries = 64
