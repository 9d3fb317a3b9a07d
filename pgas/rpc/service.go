package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"gopgas/internal/sched"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// Service is functions that the members of a team call on each other. Make it with New, give it functions with Handle and HandleInTurn, and Start it. Any goroutine may call
// functions at any time; the collective methods are Start, Quiesce and Close.
type Service struct {
	team  *pgsync.Team
	funcs []served
	kinds []string // of each its name and types

	ring   int // words of each ring
	rings  *window.Window[uint64]
	local  []uint64 // this rank's part
	marks  *pgsync.Signals
	tails  []pgsync.Signal // by member: how far its messages here are laid
	heads  []pgsync.Signal // by member: how far it has taken those from here
	lanes  []lane
	inlets []inlet

	pending pending
	backlog atomic.Int64  // messages that wait in lanes
	calls   atomic.Uint64 // of this rank, flushes too, and how many of them have ended
	over    atomic.Uint64
	running atomic.Int64 // goroutines that serve
	last    uint64       // what all members had begun at Quiesce's last look, and one more
	adding  *sum         // of what all have begun: where a context has ended meanwhile
	failed  error        // what Quiesce will return

	serving atomic.Bool // somebody looks for messages
	server  *server     // who does, if it is who serves; of that one, as the next
	job     *job        // what he makes next
	relief  relief
	wanted  atomic.Bool // and somebody else wanted to
	door    door

	ctx, inTurn context.Context // what functions are given
	cancel      context.CancelCauseFunc
	started     bool
	met         bool        // Start has come to its end
	closed      atomic.Bool // nothing of the above is touched any more
	gone        atomic.Bool // the goroutine that serves has ended
	freeing     bool        // Close has come so far
	forget      func()
}

// New returns a service without functions. It is local; give it the same functions in the same order on every member, then Start it.
func New(t *pgsync.Team) *Service { return &Service{team: t} }

// Team returns the team whose members call each other.
func (s *Service) Team() *pgsync.Team { return s.team }

// Start allocates what messages travel through and begins to serve this rank's functions, in a goroutine of its own. Others may call them when it has
// returned. Collective; members that have other functions, of other types, or the same in another order, all get an error that wraps pgsync.ErrMismatch.
// When ctx ends while it waits for the others to have come as far it is called again, before any other collective call of the team, and goes on.
func (s *Service) Start(ctx context.Context) error {
	const op = "start service"
	if s.started && !s.met {
		return s.meet(ctx, op)
	}
	var refusal error
	if s.started {
		refusal = fmt.Errorf("%w: the service was started before", pgsync.ErrState)
	}
	if err := s.team.Alike(ctx, op, "a service of "+strings.Join(s.kinds, ", "), refusal); err != nil {
		return err
	}
	n := s.team.Size()
	s.ring = ringWords(n)
	var err error
	if s.rings, err = window.Allocate[uint64](ctx, s.team, doorWords+n*s.ring); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if s.marks, err = pgsync.NewSignals(ctx, s.team, 2*n); err != nil {
		return fmt.Errorf("%s: %w", op, errors.Join(err, s.rings.Free(ctx)))
	}
	s.marks.FollowFailed() // answers are waited for by others
	s.open()
	return s.meet(ctx, op)
}

// meet is the last part of Start: nobody is called before he has looked at who is there. After an error of ctx it goes on when it is called again.
func (s *Service) meet(ctx context.Context, op string) error {
	if err := s.team.Barrier(ctx); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	s.met = true
	return nil
}

// open makes what is local and begins to serve.
func (s *Service) open() {
	n := s.team.Size()
	s.local = s.rings.Local()
	s.lanes, s.inlets = make([]lane, n), make([]inlet, n)
	s.tails, s.heads = make([]pgsync.Signal, n), make([]pgsync.Signal, n)
	for m := range n {
		s.lanes[m].s, s.lanes[m].member = s, m
		s.tails[m], s.heads[m] = s.marks.Signal(m), s.marks.Signal(n+m)
	}
	s.door.open(s.rings, s.team)
	var ctx context.Context
	ctx, s.cancel = context.WithCancelCause(context.Background())
	s.ctx = ctx
	s.inTurn = context.WithValue(ctx, turn{}, s)
	s.started = true
	e := s.team.Engine()
	s.forget = e.AtEnd(s.leave)
	if !e.Sched.Virtual() { // there who serves makes no calls
		s.relief.bell = sched.NewSeat()
		e.Sched.Go(s.relieve)
	}
	s.goServe()
}

// from is where in any part the ring of a member begins that writes there.
func (s *Service) from(member int) int { return doorWords + member*s.ring }

// beside runs f in a goroutine of the rank.
func (s *Service) beside(f func()) {
	s.running.Add(1)
	s.goes(f)
}

// goes is beside of what counts as running.
func (s *Service) goes(f func()) {
	s.team.Engine().Sched.Go(func() {
		defer s.ran()
		f()
	})
}

// ran says that a call has ended that was not in turn.
func (s *Service) ran() {
	s.running.Add(-1)
	s.team.Engine().Sched.Ring()
}

// usable returns why member cannot be called.
func (s *Service) usable(member int) error {
	const op = "call"
	switch {
	case s.closed.Load():
		return transport.NewOpError(op, -1, transport.ErrClosed)
	case !s.started:
		return transport.NewOpError(op, -1, fmt.Errorf("%w: the service was not started", pgsync.ErrState))
	case member < 0 || member >= s.team.Size():
		return transport.NewOpError(op, member, fmt.Errorf("%w: target %d of a team of %d", pgsync.ErrMember, member, s.team.Size()))
	}
	return s.team.Engine().Gone(op, s.team.WorldRank(member))
}

// callable returns why a function of member cannot be called now: as usable does, or since it would not find what was put there before, of which nobody was told.
func (s *Service) callable(member int) error {
	if err := s.usable(member); err != nil {
		return err
	}
	return s.team.Engine().Told(s.team.WorldRank(member))
}

// Flush returns when all that this goroutine has sent to a member with Func.Send before has been done there, with the first error that any of this rank's messages to it has
// returned since the last Flush. When ctx ends first the next one has it. It waits for what other goroutines of this rank have sent there before, too: a function that this rank has sent to itself
// would wait for its own end, which with its ctx is an error.
func (s *Service) Flush(ctx context.Context, member int) error {
	const op = "flush"
	if err := s.usable(member); err != nil {
		return err
	}
	if ofTurn(ctx) {
		return transport.NewOpError(op, s.team.WorldRank(member), errInTurn)
	}
	if v := visitOf(ctx, s); v != nil && v.sent && member == s.team.Rank() {
		return transport.NewOpError(op, s.team.WorldRank(member), errInside)
	}
	q, err := s.ask(ctx, member)
	if err == nil {
		err = s.flushedBy(ctx, op, member, q) // the answer may come all the same, and with it an error that nobody else is told
	}
	if err != nil {
		return err
	}
	return s.lanes[member].failure()
}

// question is a flush of this rank.
type question struct {
	outcome
	sent uint64 // messages that it is behind
}

// ask begins a flush.
func (s *Service) ask(ctx context.Context, member int) (*question, error) {
	l := &s.lanes[member]
	q := &question{outcome{lane: l}, l.sent.Load()}
	id := s.begin(&q.outcome)
	if err := s.bring(ctx, member, message{kind: flush, id: id}); err != nil {
		s.fail(id)
		return nil, err
	}
	return q, nil
}

// flushedBy waits for the answer to a flush.
func (s *Service) flushedBy(ctx context.Context, op string, member int, q *question) error {
	if err := s.await(ctx, op, member, q.done.Load); err != nil {
		return err
	}
	if q.lost != nil {
		return q.lost
	}
	l := &s.lanes[member]
	for f := l.flushed.Load(); f < q.sent && !l.flushed.CompareAndSwap(f, q.sent); f = l.flushed.Load() {
	}
	return nil
}

// Quiesce returns when no call of any member is under way, and none will be until somebody makes another one: all that was called or sent has been done, what functions have called in their turn too.
// Collective; nobody else of the ranks may call meanwhile. In a function, whose own call is under way, it is an error with its ctx. It returns the first error of what this rank has sent. When ctx ends before the others have come it is called again,
// before any other collective call of the team; what this rank calls in between may be under way when it returns.
func (s *Service) Quiesce(ctx context.Context) error {
	const op = "quiesce"
	if err := s.usable(s.team.Rank()); err != nil {
		return err
	}
	if ofTurn(ctx) {
		return transport.NewOpError(op, -1, errInTurn)
	}
	if visitOf(ctx, s) != nil {
		return transport.NewOpError(op, -1, errInside)
	}
	for {
		all, err := s.begun(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		// Nobody has begun anything between the two times that he said how much he had begun and that it had ended: at any time between, nothing is under way.
		// One more, since nothing has been begun before the first time.
		if all++; all == s.last {
			err := s.failed
			s.last, s.failed = 0, nil
			return err
		}
		s.last = all
	}
}

// sum is what all members have begun, while it is added up. It goes on when a context ends: the others may have this rank's part of it.
type sum struct {
	r   *pgsync.Request
	all [1]uint64
}

// begun returns what all members had begun when each had nothing under way. Collective; after an error of ctx the next call goes on with it.
func (s *Service) begun(ctx context.Context) (all uint64, err error) {
	if s.adding == nil {
		own, err := s.rest(ctx)
		if err != nil {
			return 0, err
		}
		a := &sum{all: [1]uint64{own}}
		a.r = s.team.Start(func(ctx context.Context, t *pgsync.Team) error {
			return pgsync.AllReduce(ctx, t, a.all[:], a.all[:], pgsync.Sum)
		})
		s.adding = a
	}
	a := s.adding
	if err := a.r.Wait(ctx); err != nil && !a.r.Done() {
		return 0, err
	}
	s.adding = nil
	return a.all[0], a.r.Wait(ctx) // which does not wait any more
}

// rest returns when all that this rank has begun has ended, and how much that is.
func (s *Service) rest(ctx context.Context) (begun uint64, err error) {
	for {
		if err := s.flushAll(ctx); err != nil {
			return 0, err
		}
		if err := s.awaitAll(ctx, "quiesce", func() bool { return s.running.Load() == 0 && s.over.Load() == s.calls.Load() }); err != nil {
			return 0, err
		}
		begun = s.calls.Load()
		quiet := s.over.Load() == begun
		for m := range s.lanes {
			sent := s.lanes[m].sent.Load()
			begun += sent
			quiet = quiet && s.lanes[m].flushed.Load() == sent
			s.note(s.lanes[m].failure()) // that a flush whose context has ended was told
		}
		if quiet {
			return begun, nil
		}
	}
}

// flushAll flushes all members to which this rank has sent, at once. Flushes that a context has ended go on in the next call.
func (s *Service) flushAll(ctx context.Context) error {
	for m := range s.lanes {
		l := &s.lanes[m]
		if l.question != nil || l.flushed.Load() == l.sent.Load() {
			continue
		}
		q, err := s.ask(ctx, m)
		if err != nil {
			return err
		}
		l.question = q
	}
	for m := range s.lanes {
		l := &s.lanes[m]
		if l.question == nil {
			continue
		}
		err := s.flushedBy(ctx, "flush", m, l.question)
		if l.question.done.Load() {
			l.question = nil
		}
		if err != nil {
			return err
		}
		s.note(l.failure())
	}
	return nil
}

// note keeps the first error for Quiesce.
func (s *Service) note(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// Close waits as Quiesce does, ends the service and gives its memory back. Collective. When ctx ends before the others have come it is called again, as Quiesce is, and
// the service goes on. When it fails otherwise, since a member is gone, the service ends for this rank alone: calls of others to it end with transport.ErrClosed.
func (s *Service) Close(ctx context.Context) error {
	if s.freeing {
		return s.free(ctx)
	}
	err := s.Quiesce(ctx)
	var told *Error
	var unsent *unsentError
	if err != nil && !errors.As(err, &told) && !errors.As(err, &unsent) {
		// The others will not come. Where the service has ended before, as the world's end ends it, the memory may be gone.
		if s.started && !s.closed.Load() && sched.Ended(ctx) == nil && !errors.Is(err, errInTurn) && !errors.Is(err, errInside) {
			s.leave()
			s.tellLeft()
		}
		return err
	}
	s.leave()
	s.forget()
	return errors.Join(err, s.free(ctx))
}

// free gives the memory back. Where ctx ends meanwhile the next call goes on with it. A Free of signals is called once: that of the window, behind it, brings it to its end.
func (s *Service) free(ctx context.Context) error {
	var marks error
	if !s.freeing {
		s.freeing = true
		marks = s.marks.Free(ctx)
	}
	rings := s.rings.Free(ctx)
	if end := sched.Ended(ctx); rings == nil && end != nil && errors.Is(marks, end) {
		return nil
	}
	return errors.Join(marks, rings)
}

// left is what a member has in a head's place that has ended the service alone.
const left = 1 << 63

// tellLeft has the calls of the others to this rank end. What this rank had to say to them before is there.
func (s *Service) tellLeft() {
	for m := range s.lanes {
		// Who is gone need not know.
		_ = s.marks.Signal(s.team.Size()+s.team.Rank()).Set(m, left)
	}
}

// hasLeft reports whether a member has ended the service alone. It is for who keeps leave waiting.
func (s *Service) hasLeft(member int) bool { return s.heads[member].Load() == left }

// ends reports whether no call of a member will be answered any more.
func (s *Service) ends(member int) bool {
	if s.usable(member) != nil {
		return true
	}
	s.door.waiting.Add(1)
	defer s.door.waiting.Add(-1)
	return s.closed.Load() || s.hasLeft(member)
}

// leave ends all use that this rank makes of the memory, also where its world ends first.
func (s *Service) leave() {
	s.end()
	e := s.team.Engine()
	s.door.own.bell.Ring()
	e.Sched.Ring()
	// Who looks for messages looks whether that is over in between; a function that is called in turn may take long.
	wait, cancel := e.Sched.WithTimeout(context.Background(), leaveMost)
	defer cancel()
	sp := e.Sched.Begin(wait, sched.What{Op: "close service", Peer: -1}, nil)
	defer sp.End()
	for !s.quiet() && sp.Step() == nil {
	}
}

// end has everybody leave who waits or serves.
func (s *Service) end() {
	s.closed.Store(true)
	s.cancel(transport.NewOpError("serve", -1, transport.ErrClosed))
}

// quiet reports whether nobody touches the memory any more.
func (s *Service) quiet() bool {
	if !s.gone.Load() || s.serving.Load() || s.door.waiting.Load() != 0 {
		return false
	}
	for m := range s.lanes {
		if s.lanes[m].busy.Load() {
			return false
		}
	}
	return true
}

// leaveMost is how long the end of a service waits for a function that is called in turn.
const leaveMost = time.Second
