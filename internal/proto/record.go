package proto

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"gopgas/internal/callsite"
	"gopgas/internal/mem"
	"gopgas/internal/profile"
	"gopgas/internal/timeline"
	"gopgas/internal/trace"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Recording takes down what an engine does, for those who ask for it: To, Line and Marks may each be nil.
type Recording struct {
	Clock *callsite.Clock
	// To takes transfers for replays: puts and gets of memory, blocking or not, mapped or not, each run of one that has many, and the
	// atomics and accumulates of one place that a NIC performs. Flags and messages are not memory that anybody registers, and are left out.
	To *trace.Recorder
	// Line takes transfers, collective calls and registrations for a picture over time.
	Line *timeline.Recorder
	// Marks label goroutines while they are in a call.
	Marks *profile.Marks

	exposures atomic.Uint32 // that this rank has seen
}

// traced is what a trace says of a member's exposed memory; nil: nobody asks.
type traced struct{ r trace.Range }

// exposed numbers an exposure; 0: nobody asks.
func (t *Recording) exposed() uint32 {
	if t == nil || t.To == nil {
		return 0
	}
	return t.exposures.Add(1)
}

// tracedPart returns what traces say of a member's memory.
func tracedPart(id uint32, start uint64, bytes int) *traced {
	if id == 0 {
		return nil
	}
	return &traced{trace.Range{ID: id, Start: start, Bytes: uint64(bytes)}}
}

// aim says where in the member's memory an event's transfer begins.
func (r *Remote) aim(e *trace.Event, off int) {
	if r.traced != nil {
		e.To, e.Off = r.traced.r, r.raddr+uint64(off)-r.traced.r.Start
	}
}

// framesRecorded are the frames between a program's call and begin that are the same for all.
const framesRecorded = 1

// begin notes a call about m and byte off of the member's memory. The caller fills in how long it took, if it waited.
func (t *Recording) begin(k trace.Kind, r *Remote, off int, m mem.Range) (trace.Event, profile.Mark) {
	e := trace.Event{Kind: k, Peer: int32(r.Rank), Addr: m.Addr(), Bytes: uint64(m.Bytes)}
	r.aim(&e, off)
	var mark profile.Mark
	if t.Marks != nil {
		mark = t.Marks.Begin(k.String(), r.Rank)
	}
	if t.To != nil {
		e.At = t.Clock.Mark((*callsite.Stack)(&e.Stack), framesRecorded)
	} else {
		e.At = t.Clock.Now()
	}
	return e, mark
}

// end takes down a blocking transfer that is over. Who calls begin and end makes the transfer itself in between: through
// a function value the user's memory would have to be on the heap.
func (t *Recording) end(e *trace.Event, mark profile.Mark) {
	e.Took = max(1, t.Clock.Now()-e.At)
	t.add(e)
	mark.End()
}

// started takes down a transfer that has begun. How long it takes nobody knows here: it is written down as 0.
func (t *Recording) started(e *trace.Event, mark profile.Mark, h Handle) {
	if h == (Handle{}) { // it is over
		e.Took = max(1, t.Clock.Now()-e.At)
	}
	t.add(e)
	mark.End()
}

func (t *Recording) add(e *trace.Event) {
	if t.To != nil {
		t.To.Add(e)
	}
	if t.Line == nil || !t.Line.Keeps(int64(e.Bytes)) {
		return
	}
	s := timeline.Span{
		At: time.Duration(e.At), Took: time.Duration(e.Took), Op: e.Kind.String(), Peer: int(e.Peer), Bytes: int64(e.Bytes),
		Kind: timeline.Transfer,
	}
	t.show(&s)
}

// atomic takes down an atomic, or an accumulate, of so many bytes at byte off of the member's memory that began with v and has
// returned. The operand is no memory that is registered: its address is written down as 0.
func (t *Recording) atomic(v *Visit, k trace.Kind, r *Remote, off, bytes int) {
	if t.To == nil {
		return
	}
	e := trace.Event{Kind: k, Peer: int32(r.Rank), Bytes: uint64(bytes), At: v.at}
	r.aim(&e, off)
	now := t.Clock.Mark((*callsite.Stack)(&e.Stack), framesRecorded)
	e.Took = max(1, now-e.At)
	t.To.Add(&e)
}

// show adds a span of a call that has not returned to the program yet: its stack is the caller's.
func (t *Recording) show(s *timeline.Span) {
	runtime.Callers(3, s.Stack[:])
	t.Line.Add(s)
}

// runs notes a call that moves many runs, all to or from one piece of memory.
func (t *Recording) runs(k trace.Kind, op string) (trace.Event, Visit) {
	e := trace.Event{Kind: k}
	v := t.visit(timeline.Transfer, op, nobody)
	if t.To != nil {
		e.At = t.Clock.Mark((*callsite.Stack)(&e.Stack), framesRecorded)
	}
	return e, v
}

// overRuns takes down that such a call has ended: To gets an event for each run, all of the time of the call. pending: not all runs
// are over, and how long they take nobody knows here.
func (t *Recording) overRuns(e *trace.Event, v *Visit, count int, run func(int) Run, m mem.Range, pending bool) {
	if t.To != nil {
		if !pending {
			e.Took = max(1, t.Clock.Now()-e.At)
		}
		for i := 0; i < count; {
			var r Run
			if r, i = whole(count, i, run); r.Bytes == 0 {
				continue
			}
			e.Peer, e.Addr, e.Bytes = int32(r.To.Rank), m.Addr()+uint64(r.Near), uint64(r.Bytes)
			e.To, e.Off = trace.Range{}, 0
			r.To.aim(e, r.Far)
			t.To.Add(e)
		}
	}
	t.over(v, m.Bytes)
}

// Visit is a call that has entered the library and is shown while it lasts. The zero Visit is none.
type Visit struct {
	at    callsite.Nanos
	op    string
	rank  int
	kind  timeline.Kind
	shown bool
	mark  profile.Mark
}

// visit notes a call that is no put or get: one that To does not take.
func (t *Recording) visit(kind timeline.Kind, op string, rank int) Visit {
	v := Visit{at: t.Clock.Now(), op: op, rank: rank, kind: kind, shown: true}
	if t.Marks != nil {
		v.mark = t.Marks.Begin(op, rank)
	}
	return v
}

// over takes down that a visit has ended.
func (t *Recording) over(v *Visit, bytes int) {
	v.mark.End()
	if t.Line == nil || v.kind == timeline.Transfer && !t.Line.Keeps(int64(bytes)) {
		return
	}
	s := timeline.Span{
		At: time.Duration(v.at), Took: max(1, time.Duration(t.Clock.Now()-v.at)), Op: v.op, Peer: v.rank, Bytes: int64(bytes), Kind: v.kind,
	}
	t.show(&s)
}

// Enter notes that a collective call begins on this goroutine; Leave, on the same, that it has ended. Without a Recording they
// do nothing.
func (e *Engine) Enter(ctx context.Context, op string, v *Visit) {
	if t := e.record; t != nil {
		t.enter(ctx, op, v)
	}
}

func (t *Recording) enter(ctx context.Context, op string, v *Visit) {
	*v = Visit{at: t.Clock.Now(), op: op, rank: nobody, kind: timeline.Collective, shown: true}
	if t.Marks != nil {
		v.mark = t.Marks.Within(ctx, op, nobody)
	}
}

// Leave ends what Enter began.
func (e *Engine) Leave(v *Visit) {
	if v.shown {
		e.record.over(v, 0)
		*v = Visit{}
	}
}

// registrar is a NIC's registrations, shown.
type registrar struct{ n *device }

// Register implements regmgr.Registrar.
func (g registrar) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	v := g.n.e.record.visit(timeline.Registration, "register", nobody)
	region, err := g.n.Domain.Register(r, a)
	g.n.e.record.over(&v, r.Bytes)
	return region, err
}

// Deregister implements regmgr.Registrar.
func (g registrar) Deregister(r transport.Region) error {
	v := g.n.e.record.visit(timeline.Registration, "deregister", nobody)
	err := g.n.Domain.Deregister(r)
	g.n.e.record.over(&v, 0)
	return err
}

// registrar returns who registers memory with the NIC.
func (n *device) registrar() regmgr.Registrar {
	if t := n.e.record; t != nil && t.Line != nil {
		return registrar{n}
	}
	return n.Domain
}
