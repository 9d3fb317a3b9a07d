package proto

import (
	"context"
	"runtime"
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
	// To takes transfers for replays: puts and gets of memory, blocking or not, mapped or not. Atomics, flags and messages are
	// not memory that a registration cache sees, and are left out.
	To *trace.Recorder
	// Line takes transfers, collective calls and registrations for a picture over time.
	Line *timeline.Recorder
	// Marks label goroutines while they are in a call.
	Marks *profile.Marks
}

// framesRecorded are the frames between a program's call and begin that are the same for all.
const framesRecorded = 1

// begin notes a call. The caller fills in how long it took, if it waited.
func (t *Recording) begin(k trace.Kind, r *Remote, m mem.Range) (trace.Event, profile.Mark) {
	e := trace.Event{Kind: k, Peer: int32(r.Rank), Addr: m.Addr(), Bytes: uint64(m.Bytes)}
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

// show adds a span of a call that has not returned to the program yet: its stack is the caller's.
func (t *Recording) show(s *timeline.Span) {
	runtime.Callers(3, s.Stack[:])
	t.Line.Add(s)
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
func (e *Engine) Enter(ctx context.Context, op string) Visit {
	t := e.record
	if t == nil {
		return Visit{}
	}
	v := Visit{at: t.Clock.Now(), op: op, rank: nobody, kind: timeline.Collective, shown: true}
	if t.Marks != nil {
		v.mark = t.Marks.Within(ctx, op, nobody)
	}
	return v
}

// Leave ends what Enter began.
func (e *Engine) Leave(v *Visit) {
	if v.shown {
		e.record.over(v, 0)
		*v = Visit{}
	}
}

// registrar is a NIC's registrations, shown.
type registrar struct{ n *nic }

// Register implements regmgr.Registrar.
func (g registrar) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	v := g.n.e.record.visit(timeline.Registration, "register", nobody)
	region, err := g.n.d.Register(r, a)
	g.n.e.record.over(&v, r.Bytes)
	return region, err
}

// Deregister implements regmgr.Registrar.
func (g registrar) Deregister(r transport.Region) error {
	v := g.n.e.record.visit(timeline.Registration, "deregister", nobody)
	err := g.n.d.Deregister(r)
	g.n.e.record.over(&v, 0)
	return err
}

// registrar returns who registers memory with the NIC.
func (n *nic) registrar() regmgr.Registrar {
	if t := n.e.record; t != nil && t.Line != nil {
		return registrar{n}
	}
	return n.d
}
