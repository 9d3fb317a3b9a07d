package rpc

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"gopgas/transport"
)

// backlogMost is how many bytes may wait for one member before who sends more waits himself.
const backlogMost = 256 << 10

// Func is a function of a service that takes an A and returns an R. Values travel as they lie in memory if that is plain (numbers, and arrays and structs without pointers; strings;
// slices of plain memory), and else as package encoding/gob has them: without fields that are not exported. A slice without elements comes as nil, a nil pointer as that.
type Func[A, R any] struct {
	s      *Service
	name   string
	number int
	call   func(ctx context.Context, from int, a A) (R, error)
	turns  bool
	lasts  span
	in     codec[A]
	out    codec[R]
	a      A // of a call in turn
	r      R
	calls  sync.Pool // of *Pending[A, R]
}

// served is a Func of any types.
type served interface {
	inTurn() bool
	span() *span
	serve(ctx context.Context, r request, body []byte, of *span) // who serves has of know how long it takes
}

// Handle adds a function to a service that was not started yet. f is called in a goroutine of its own for each call, or by who serves if it was over soon so far, many at once, and may do whatever a program may, wait and call others
// too, but for Quiesce and Close, which would wait for its end; ctx ends with the service, and from is the member that calls. What it returns goes back to who called, of an error its text.
func Handle[A, R any](s *Service, name string, f func(ctx context.Context, from int, a A) (R, error)) *Func[A, R] {
	return add(s, name, f, false)
}

// HandleInTurn is Handle of a function that does not wait and is over soon: calls of all such functions of this rank come one after the other, those of a member in
// the order in which it has made them, so that they need no lock among each other. It takes a goroutine's start less. f is called by whoever looks for messages, the goroutine that serves or
// one that waits for a call; so it must not end that (runtime.Goexit, as t.FailNow does). With its ctx it may Send and CallNB, which then keep what finds
// no room; what waits (Call, Flush, Quiesce) is an error there, and calls nothing.
func HandleInTurn[A, R any](s *Service, name string, f func(ctx context.Context, from int, a A) (R, error)) *Func[A, R] {
	return add(s, name, f, true)
}

func add[A, R any](s *Service, name string, f func(context.Context, int, A) (R, error), turns bool) *Func[A, R] {
	if s.started || len(s.funcs) == mostFuncs {
		// bug: the other members could not know of it
		panic(fmt.Sprintf("rpc: function %s added to a service that was started, or has %d", name, mostFuncs))
	}
	fn := &Func[A, R]{s: s, name: name, number: len(s.funcs), call: f, turns: turns, in: codecOf[A](), out: codecOf[R]()}
	fn.calls.New = func() any { return fn.pending() }
	s.funcs = append(s.funcs, fn)
	s.kinds = append(s.kinds, fmt.Sprintf("%q(%s) %s", name, reflect.TypeFor[A](), reflect.TypeFor[R]()))
	return fn
}

func (f *Func[A, R]) inTurn() bool { return f.turns }

func (f *Func[A, R]) span() *span { return &f.lasts }

func (f *Func[A, R]) serve(ctx context.Context, r request, body []byte, of *span) {
	var a *A
	var res *R
	if f.turns {
		var none A
		f.a = none
		a, res = &f.a, &f.r
	} else {
		a, res = new(A), new(R)
	}
	err := errUnreturned
	var out []byte
	defer func() { r.end(out, err) }()
	if wrong := f.in.value(body, a); wrong != nil {
		err = wrong
		return
	}
	if of == nil {
		*res, err = f.call(ctx, r.from, *a)
	} else {
		began := r.s.team.Engine().Sched.Now()
		*res, err = f.call(ctx, r.from, *a)
		of.over(r.s.team.Engine().Sched.Now() - began)
	}
	if err == nil && r.answers {
		out, err = f.out.bytes(res)
	}
}

// Pending is a call that was begun.
type Pending[A, R any] struct {
	f      *Func[A, R]
	member int
	id     uint64
	o      outcome
	a      A
	r      R
}

func (f *Func[A, R]) pending() *Pending[A, R] {
	p := &Pending[A, R]{f: f}
	if f.out.atOnce() {
		p.o.into = func(b []byte) error { return f.out.value(b, &p.r) }
	}
	return p
}

// Call calls the function at a member, which may be this one, and returns what it returns: an error of it as an *Error. It waits; when ctx ends first, the function may be called all the same.
func (f *Func[A, R]) Call(ctx context.Context, member int, a A) (r R, err error) {
	if ofTurn(ctx) {
		return r, transport.NewOpError("call", -1, errInTurn)
	}
	p := f.calls.Get().(*Pending[A, R])
	p.a = a
	if err := p.begin(ctx, member); err != nil {
		return r, err
	}
	r, err = p.Wait(ctx)
	if !p.o.done.Load() {
		f.s.pending.forget(p.id) // an answer may be about to be written to p all the same
		return r, err
	}
	f.put(p)
	return r, err
}

// put keeps a call that has ended for the next one.
func (f *Func[A, R]) put(p *Pending[A, R]) {
	*p = Pending[A, R]{f: f, o: outcome{into: p.o.into}}
	f.calls.Put(p)
}

// CallNB begins a call and returns before it is answered. It waits only while too much waits for that member already. a may be used again on return.
func (f *Func[A, R]) CallNB(ctx context.Context, member int, a A) (*Pending[A, R], error) {
	p := f.pending()
	p.a = a
	if err := p.begin(ctx, member); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Pending[A, R]) begin(ctx context.Context, member int) error {
	s := p.f.s
	body, err := p.f.in.bytes(&p.a)
	if err != nil {
		return fmt.Errorf("call %s: %w", p.f.name, err)
	}
	if err := s.callable(member); err != nil {
		return err
	}
	p.member = member
	p.id = s.begin(&p.o)
	if err := s.bring(ctx, member, message{kind: call, fn: p.f.number, id: p.id, payload: body}); err != nil {
		s.fail(p.id)
		return err
	}
	return nil
}

// Done reports whether the call has ended, in success or in error. It looks for messages, so that a loop over it ends.
func (p *Pending[A, R]) Done() bool {
	if p.o.done.Load() {
		return true
	}
	s := p.f.s
	if sc := s.team.Engine().Sched; !s.poll() && sc.Virtual() {
		_ = sc.Sleep(context.Background(), vain) // ends early only where the world has ended
	}
	return p.o.done.Load() || s.ends(p.member)
}

// vain is what a look in vain takes in virtual time, where nothing else would let the others run.
const vain = 100 * time.Nanosecond

// Wait returns what the function has returned, when it has, whenever and by however many goroutines it is asked. When ctx ends first, Wait may be called again.
func (p *Pending[A, R]) Wait(ctx context.Context) (R, error) {
	var none R
	f := p.f
	if err := f.s.await(ctx, "call", p.member, p.o.done.Load); err != nil {
		return none, err
	}
	switch {
	case p.o.lost != nil:
		return none, p.o.lost
	case p.o.failed:
		return none, f.s.told(p.member, f.name, p.o.raw)
	case p.o.err != nil:
		return none, transport.NewOpError("call", f.s.team.WorldRank(p.member), fmt.Errorf("result of %s: %w", f.name, p.o.err))
	case !f.out.atOnce():
		var r R // of this call of Wait alone
		if err := f.out.value(p.o.raw, &r); err != nil {
			return none, transport.NewOpError("call", f.s.team.WorldRank(p.member), fmt.Errorf("result of %s: %w", f.name, err))
		}
		return r, nil
	}
	return p.r, nil
}

// Send calls the function at a member without an answer. It returns when a may be used again, and waits only while too much waits for that member already. Messages of this goroutine to one member come there
// in order, before calls that it makes later. What the function returns is thrown away, but for an error: Service.Flush and Quiesce return the first one. Over a NIC those that come soon behind another are
// gathered, and brought together some microseconds later, or with whatever this rank calls next; a millisecond later where it computes.
func (f *Func[A, R]) Send(ctx context.Context, member int, a A) error {
	s := f.s
	if err := s.callable(member); err != nil {
		return err
	}
	p := f.calls.Get().(*Pending[A, R])
	p.a = a
	defer f.put(p)
	body, err := f.in.bytes(&p.a)
	if err != nil {
		return fmt.Errorf("send to %s: %w", f.name, err)
	}
	if err := s.bring(ctx, member, message{kind: send, fn: f.number, payload: body}); err != nil {
		return err
	}
	s.lanes[member].sent.Add(1)
	return nil
}

// bring posts m when not too much waits for the member. A function that is called in turn does not wait for that.
func (s *Service) bring(ctx context.Context, member int, m message) error {
	l := &s.lanes[member]
	if l.bytes.Load() > backlogMost && !ofTurn(ctx) {
		if err := s.await(ctx, "send", member, func() bool { return l.bytes.Load() <= backlogMost }); err != nil {
			return err
		}
	}
	return l.post(m)
}

// fail takes back a call that did not go.
func (s *Service) fail(id uint64) {
	s.pending.forget(id)
	s.over.Add(1)
}

// Error is what a function has returned at another rank.
type Error struct {
	Rank int    // of the world
	Func string // its name
	Text string // of the error that it has returned
}

func (e *Error) Error() string { return fmt.Sprintf("rank %d: %s: %s", e.Rank, e.Func, e.Text) }

// Is has errors.Is tell an error of a called function from one of the call.
func (e *Error) Is(target error) bool { return target == ErrCalled }

var errUnreturned = errors.New("the function has not returned")

// ErrCalled is wrapped by errors that the called function has returned.
var ErrCalled = errors.New("the called function returned an error")

func (s *Service) told(member int, name string, text []byte) error {
	return &Error{Rank: s.team.WorldRank(member), Func: name, Text: string(text)}
}
