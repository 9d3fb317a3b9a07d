package pgsync

import (
	"context"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Event is a counting semaphore on every member of a team: others post to it, and its owner waits for posts and takes
// them. (The events of Fortran 2018, section 11.6.8.) The count is a word that only grows, beside one of the owner's for what
// was taken, so a post is one atomic and a wait touches this rank's memory only.
type Event struct {
	held
	peers []proto.Remote
	local mem.Range
	taken atomic.Uint64
	race  *racecheck.Shelf // nil: races are not looked for
}

// NewEvent returns an event that nobody has posted to. Collective.
func NewEvent(ctx context.Context, t *Team) (*Event, error) {
	e := &Event{}
	if err := e.hold(ctx, t, signalBytes+t.races.ShelfBytes(1, 0)); err != nil {
		return nil, err
	}
	e.peers, e.local = e.block.Remotes(), e.block.Local()
	proto.Shows(e.peers)
	e.shut = func() {}
	e.race = t.races.Shelf(e.peers, signalBytes, 1, 0)
	return e, nil
}

// Post adds n posts to target's event, after all earlier puts of this rank to that rank: who takes them sees what was put.
// It is one atomic, which it waits for. A put that is known to have failed ends it as it ends Signal.Set.
func (e *Event) Post(target int, n uint64) error {
	const op = "post"
	if usable := e.usable(); !usable || uint(target) >= uint(len(e.peers)) {
		return refused(op, e.peers, target, !usable)
	}
	r := &e.peers[target]
	if err := e.t.e.Gone(op, r.Rank); err != nil {
		return err
	}
	e.race.Release(target, 0, racecheck.CarryAll)
	return e.t.e.SignalAdd(r, 0, n)
}

// Count returns how many posts to this rank are there to be taken. It returns no error, as TryWait does not.
func (e *Event) Count() uint64 {
	if !e.usable() {
		return 0
	}
	taken := e.taken.Load() // before the word, which is never less
	return e.local.Word64(0).Load() - taken
}

// TryWait takes n posts if there are as many, and reports whether it did. It returns no error: a loop over it does not end when the rank
// dies that was to post. Wait does, and so does Team.WaitAny, which can ask TryWait.
func (e *Event) TryWait(n uint64) bool { return e.usable() && e.take(n) }

// take is TryWait of an event that was not freed when the call began.
func (e *Event) take(n uint64) bool {
	for !e.gone.Load() {
		taken := e.taken.Load()
		if e.local.Word64(0).Load()-taken < n || e.gone.Load() { // behind the look, too: what that saw may be others' by now
			return false
		}
		if e.taken.CompareAndSwap(taken, taken+n) {
			e.t.e.Sched.Seen()
			e.race.Acquire(e.t.me, 0)
			return true
		}
	}
	return false
}

// Wait waits until there are n posts and takes them. Several goroutines may wait; who finds enough takes, whoever came first.
// It fails when a member of the team is gone, since any member might be the one to post, and when another goroutine frees the event.
func (e *Event) Wait(ctx context.Context, n uint64) error {
	const op = "wait for an event"
	if !e.usable() {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if e.take(n) {
		return nil
	}
	sp := e.t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: -1}, e.t)
	defer sp.End()
	for !e.take(n) {
		if e.gone.Load() {
			return transport.NewOpError(op, -1, transport.ErrClosed)
		}
		if err := sp.Step(); err != nil {
			return e.t.waitError(op, -1, err)
		}
	}
	e.t.e.NoteWait(&sp, &e.peers[e.t.me])
	return nil
}

// usable reports whether the event was made, and not freed.
func (e *Event) usable() bool { return e.peers != nil && !e.gone.Load() }

// Free gives the event back. Collective.
func (e *Event) Free(ctx context.Context) error { return e.free(ctx) }
