package proto

import (
	"gopgas/internal/callsite"
	"gopgas/internal/mem"
	"gopgas/internal/trace"
)

// Recording takes down what an engine transfers, for replays: puts and gets of memory, blocking or not, mapped or not.
// Atomics, flags and messages are not memory that a registration cache sees, and are left out.
type Recording struct {
	Clock *callsite.Clock
	To    *trace.Recorder
}

// framesRecorded are the frames between a program's call and begin that are the same for all.
const framesRecorded = 1

// begin notes a call. The caller fills in how long it took, if it waited.
func (t *Recording) begin(k trace.Kind, r *Remote, m mem.Range) trace.Event {
	e := trace.Event{Kind: k, Peer: int32(r.Rank), Addr: m.Addr(), Bytes: uint64(m.Bytes)}
	e.At = t.Clock.Mark((*callsite.Stack)(&e.Stack), framesRecorded)
	return e
}

// end takes down a blocking transfer that is over. Who calls begin and end makes the transfer itself in between: through
// a function value the user's memory would have to be on the heap.
func (t *Recording) end(e *trace.Event) {
	e.Took = max(1, t.Clock.Now()-e.At)
	t.To.Add(e)
}

// started begins a transfer and takes it down. How long it takes nobody knows here: it is written down as 0.
func (t *Recording) started(k trace.Kind, r *Remote, off int, m mem.Range,
	do func(*Remote, int, mem.Range) (Handle, error),
) (Handle, error) {
	e := t.begin(k, r, m)
	h, err := do(r, off, m)
	if h == (Handle{}) { // it is over
		e.Took = max(1, t.Clock.Now()-e.At)
	}
	t.To.Add(&e)
	return h, err
}
