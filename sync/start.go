package pgsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/symheap"
	"gopgas/transport"
)

// Request is a call that Start has begun. Any goroutine of the rank may ask it.
type Request struct {
	t    *Team
	done atomic.Bool
	err  error // valid when done
}

// Start begins f beside the program and returns at once: it makes any collective calls non-blocking.
//
//	r := team.Start(func(ctx context.Context, t *pgsync.Team) error {
//		return pgsync.AllReduce(ctx, t, sum, part, pgsync.Sum)
//	})
//	compute()
//	err := r.Wait(ctx)
//
// f runs in a goroutine of its own and makes its calls on t, a view of the team that has the same members. It goes on while
// the program computes, over every transport. Start itself is a collective call: it takes its place in the order of the
// team's calls, in which all members start the same; a started call does not match a blocking one. Up to four calls of
// a team go on at once, further ones wait for the one four before them. Collectives on the team itself go on meanwhile.
// Beside what f does, a started call costs a message of each member.
//
// f must not touch the team that Start was called on, nor make collective calls on what was made of that (a window, an array): every fourth call waits for the started one
// to end, so for itself, which is an error if it has f's context, and otherwise lasts until its own ends. Nor must f allocate on t (windows, locks, signals) or free it:
// that is an error, and so is a collective on t when f has returned. The context that f is given does not end. An error that f returns spoils the team for further collectives, since some of its
// turns may not have taken place. Start costs a goroutine and some allocations.
func (t *Team) Start(f func(ctx context.Context, t *Team) error) *Request {
	r := &Request{t: t}
	var err error
	switch {
	case t.lane != nil:
		err = fmt.Errorf("%w: a started call starts another one", ErrState)
	case t.core.freed.Load():
		err = fmt.Errorf("team: %w", transport.ErrClosed)
	case t.core.running.quit.Load():
		err = errLeft
	}
	if err != nil {
		r.end(transport.NewOpError("start", -1, err))
		return r
	}
	v, left := t.view(), t.takeOver()
	v.heap = symheap.New(t.e, noExchange{}, t.ranks, t.me)
	t.core.add(1)
	queue := turns{t: t, op: "start"}
	queue.number, queue.l, queue.ticket = t.core.next()
	v.lane, v.call = queue.l, queue.number|startedCall
	t.e.Sched.Go(func() { r.run(v, left, queue, f) })
	return r
}

// view is a team of the same members that another goroutine can make calls on. It has no lane and no heap yet.
func (t *Team) view() *Team {
	return &Team{e: t.e, ranks: t.ranks, all: t.all, me: t.me, shape: t.shape, peers: t.peers, local: t.local, slips: t.slips, pushes: t.pushes, apart: t.apart, maps: t.maps, core: t.core, races: t.races}
}

// takeOver returns a view on which a barrier of this team that was left before its end is pending, or lanes are kept by calls that it has gone ahead in, and are not on this
// team any more; nil if there is none. A started call goes on with it, as any other does: the others may be in it still, and come to the call behind it.
func (t *Team) takeOver() *Team {
	if !t.busy.CompareAndSwap(0, 1) {
		return nil // another goroutine is in a collective, and has gone on with it
	}
	defer mem.Publish32(&t.busy, 0)
	if !t.pending && t.debts.lanes == 0 {
		return nil
	}
	v := t.view()
	v.cur, v.behind, v.pending, v.debts = t.cur, t.behind, t.pending, t.debts
	v.cur.t, v.unbegun = v, t.unbegun
	for i := range v.unbegun {
		v.unbegun[i].c.t = v
	}
	v.taken = t.taken
	if t.pending && t.gives() {
		t.taken = v
	}
	t.pending, t.behind, t.unbegun, t.debts.lanes = false, behind{}, nil, 0
	return v
}

// gives reports whether something is done behind what is pending.
func (t *Team) gives() bool {
	return t.behind.then != nil || slices.ContainsFunc(t.unbegun, func(u unbegun) bool { return u.b.then != nil })
}

// awaitTaken waits for what a started call has taken over: behind that memory is given back, to the heap that this goroutine is about to use, and the others have that back before they come here.
func (t *Team) awaitTaken(ctx context.Context, op string) error {
	if t.taken == nil {
		return nil
	}
	return t.awaitTakenNow(ctx, op)
}

func (t *Team) awaitTakenNow(ctx context.Context, op string) error {
	err := t.wait(ctx, op, t.taken.over.Load)
	if err == nil {
		t.taken = nil
	}
	return err
}

// BarrierNB is a Barrier that is started: members go on, and learn from the request when all have come. Collective.
func (t *Team) BarrierNB() *Request {
	return t.Start(func(ctx context.Context, t *Team) error { return t.Barrier(ctx) })
}

// add counts calls that go on beside the program.
func (c *core) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started += n
	c.running.started.Add(int64(n))
}

// errUnended: f did not return.
var errUnended = errors.New("the started function has ended its goroutine")

// run is the life of the goroutine. left is what takeOver has returned.
func (r *Request) run(v, left *Team, queue turns, f func(context.Context, *Team) error) {
	err := errUnended
	defer func() {
		v.over.Store(true)
		if err != nil {
			// Its turns may not all have taken place, and the others may wait for them.
			v.forsake(err)
		}
		r.end(err)
		queue.l.free(v, queue.ticket)
		v.core.add(-1)
		v.e.Sched.Ring()
	}()
	ctx := context.Background()
	if left != nil {
		if err = left.payAll(ctx); err == nil && left.pending {
			err = left.proceed(ctx)
		}
		left.over.Store(true)
		v.e.Sched.Ring()
		if err != nil {
			return
		}
	}
	if err = queue.queue(ctx, func() error { return queue.t.payFor(ctx, queue.l) }); err != nil {
		return
	}
	if broken := v.core.failure(); broken != nil {
		err = transport.NewOpError("start", -1, fmt.Errorf("%w: %w", ErrAbandoned, broken))
		return
	}
	err = errUnended
	if err = f(context.WithValue(ctx, startedView{}, v), v); err == nil && v.pending { // f has left a barrier, and does not mind
		err = v.proceed(ctx)
	}
	if err == nil {
		err = v.endStarted()
	}
}

// startedView is what a started call's context knows its view by.
type startedView struct{}

var errOwnEnd = fmt.Errorf("%w: a started call makes calls on the team that it was started on, where this one would wait for its end; it makes them on the team that "+
	"it is given, and none on windows and arrays of the other", ErrState)

// ofStarted reports whether a call that waits for its lane is made by the started call that has the lane: that would not end before it.
func (c *turns) ofStarted(ctx context.Context) bool {
	if c.t.lane != nil || ctx == nil {
		return false
	}
	v, ok := ctx.Value(startedView{}).(*Team)
	return ok && v.core == c.t.core && v.lane == c.l && !v.over.Load()
}

func (r *Request) end(err error) {
	r.err = err
	r.done.Store(true)
}

// Done reports whether the call has ended, in success or in error.
func (r *Request) Done() bool { return r.done.Load() }

// Wait returns when the call has ended, with what its function returned, whenever it is asked. When ctx ends first it
// returns ctx's cause, and the call goes on: its buffers stay the call's until Done.
func (r *Request) Wait(ctx context.Context) error {
	if err := r.t.wait(ctx, "wait for a started call", r.done.Load); err != nil {
		return err
	}
	return r.err
}

// wait steps until cond holds.
func (t *Team) wait(ctx context.Context, op string, cond func() bool) error {
	if cond() {
		return nil
	}
	sp := t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: -1}, nil)
	defer sp.End()
	for !cond() {
		if err := sp.Step(); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	return nil
}

// Drain waits for all calls that this rank has started on the team. It is not collective.
func (t *Team) Drain(ctx context.Context) error {
	if t.lane != nil {
		return transport.NewOpError("drain", -1, fmt.Errorf("%w: a started call would wait for its own end", ErrState))
	}
	return t.wait(ctx, "drain", func() bool {
		t.core.mu.Lock()
		defer t.core.mu.Unlock()
		return t.core.started == 0
	})
}

// DrainWorld is Drain for all teams of the world that t belongs to. It is for the composition root, as is Quit.
func (t *Team) DrainWorld(ctx context.Context) error {
	return t.wait(ctx, "drain", func() bool { return t.core.running.started.Load() == 0 })
}

// Quit ends the waits of all teams of the world that t belongs to: this rank leaves without the others.
func (t *Team) Quit() {
	t.core.running.quit.Store(true)
	t.e.Sched.Ring()
}

// noExchange keeps views from allocating: members could not agree on the order of allocations that go on at once.
type noExchange struct{}

// Exchange implements proto.Exchanger.
func (noExchange) Exchange(context.Context, []byte) ([][]byte, error) {
	return nil, fmt.Errorf("%w: a started call allocates on its team; allocate before Start", ErrState)
}
