package transporttest

import (
	"sync"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// EventKind is which call of a domain an Event is from.
type EventKind uint8

// The calls that Trace records. A Post is one EventPost and then one EventOp for each operation taken; a Poll
// is one EventPoll and then one EventCompletion for each completion.
const (
	EventPost EventKind = iota + 1
	EventOp
	EventPostRecv
	EventPoll
	EventCompletion
	EventRegister
	EventDeregister
	EventDisconnect
)

// Event is one thing that crossed the seam. Which fields are set depends on Call.
type Event struct {
	Call   EventKind
	Kind   transport.Kind // operations and completions
	Flags  uint8          // operations
	NSGE   uint8          // operations
	Status transport.Status
	EP     transport.EP
	Asked  int32 // posts: operations handed over; polls: room for completions
	Taken  int32 // posts: operations taken; polls: completions
	Bytes  int64 // operations, completions and registrations
	Cookie uint64
	Failed bool // the call returned an error
}

// Trace wraps d, which it takes over, and tells sink of every operation and completion. sink is called after
// the wrapped call, by the goroutine that made it, and by several at once if they call at once. The events of
// a Post and of a Poll may interleave: a completion may be told of before its operation.
func Trace(d transport.Domain, sink func(Event)) transport.Domain { return &traced{d, sink} }

type traced struct {
	transport.Domain
	sink func(Event)
}

func (t *traced) Post(ops []transport.Op) (int, error) {
	n, err := t.Domain.Post(ops)
	t.sink(Event{Call: EventPost, Asked: int32(len(ops)), Taken: int32(n), Failed: err != nil})
	for i := range ops[:n] {
		op := &ops[i]
		t.sink(Event{
			Call: EventOp, Kind: op.Kind, Flags: op.Flags, NSGE: op.NSGE, EP: op.EP, Cookie: op.Cookie,
			Bytes: int64(softnic.Total(op.SGE[:op.NSGE])),
		})
	}
	return n, err
}

func (t *traced) PostRecv(bufs []transport.Recv) (int, error) {
	n, err := t.Domain.PostRecv(bufs)
	t.sink(Event{Call: EventPostRecv, Asked: int32(len(bufs)), Taken: int32(n), Failed: err != nil})
	return n, err
}

func (t *traced) Poll(cq []transport.Completion) (int, error) {
	n, err := t.Domain.Poll(cq)
	t.sink(Event{Call: EventPoll, Asked: int32(len(cq)), Taken: int32(n), Failed: err != nil})
	for _, c := range cq[:n] {
		t.sink(Event{Call: EventCompletion, Kind: c.Kind, Status: c.Status, EP: c.EP, Bytes: int64(c.Bytes), Cookie: c.Cookie})
	}
	return n, err
}

func (t *traced) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	reg, err := t.Domain.Register(r, a)
	t.sink(Event{Call: EventRegister, Bytes: int64(r.Bytes), Cookie: reg.ID, Failed: err != nil})
	return reg, err
}

func (t *traced) Deregister(r transport.Region) error {
	err := t.Domain.Deregister(r)
	t.sink(Event{Call: EventDeregister, Cookie: r.ID, Failed: err != nil})
	return err
}

func (t *traced) Disconnect(ep transport.EP) error {
	err := t.Domain.Disconnect(ep)
	t.sink(Event{Call: EventDisconnect, EP: ep, Failed: err != nil})
	return err
}

// Counts is what a Recorder has counted.
type Counts struct {
	Posts, ShortPosts, Ops   int // crossings, those that took fewer than asked, operations taken
	Polls, Completions       int // all calls of Poll, completions reported
	Errors                   int // completions that say something else than success
	Registers, Deregisters   int // those that succeeded
	BytesPosted, BytesPinned int64
}

// Recorder is a sink for Trace that counts, and keeps the events unless CountOnly is set. The zero Recorder is
// ready; it may be shared by several domains. Polls that found nothing are counted and not kept.
type Recorder struct {
	CountOnly bool // set before use; Record allocates nothing then

	mu     sync.Mutex
	events []Event
	counts Counts
}

// Record is the sink.
func (r *Recorder) Record(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.counts
	switch e.Call {
	case EventPost:
		c.Posts++
		if e.Taken < e.Asked {
			c.ShortPosts++
		}
	case EventOp:
		c.Ops++
		c.BytesPosted += e.Bytes
	case EventPoll:
		c.Polls++
		if e.Taken == 0 {
			return
		}
	case EventCompletion:
		c.Completions++
		if e.Status != transport.StatusOK {
			c.Errors++
		}
	case EventRegister:
		if !e.Failed {
			c.Registers++
			c.BytesPinned += e.Bytes
		}
	case EventDeregister:
		if !e.Failed {
			c.Deregisters++
		}
	}
	if !r.CountOnly {
		r.events = append(r.events, e)
	}
}

// Counts returns what has been counted since the last Reset.
func (r *Recorder) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Events returns a copy of the events kept since the last Reset, in the order they were recorded.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// Reset forgets everything.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.counts = r.events[:0], Counts{}
}
