package soft

import (
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// entry is one completion and the seat whose place it gives back, if any.
type entry struct {
	c transport.Completion
	s *seat
}

// completions is a domain's completion queue: the engine alone fills it, one poller at a time empties it, and
// neither takes a lock. It holds what credit allows and has no bound of its own: a full ring is continued in a
// larger one, which is the last time that the engine allocates.
type completions struct {
	out  atomic.Pointer[cqRing] // the poller's
	_    [lineBytes]byte
	in   *cqRing // the engine's, like room
	room uint64  // how many of in's entries were taken when it was last full
}

// cqRing is a ring of a power of two of entries.
type cqRing struct {
	entries []entry
	next    atomic.Pointer[cqRing] // where the engine went on when this one was full
	_       [lineBytes]byte
	head    atomic.Uint64 // taken
	_       [lineBytes]byte
	tail    atomic.Uint64 // put
	_       [lineBytes]byte
}

func (q *completions) init(n int) {
	q.in = &cqRing{entries: make([]entry, ceilPow2(n))}
	q.out.Store(q.in)
}

func (q *completions) push(e entry) {
	r := q.in
	tail := r.tail.Load()
	if tail-q.room == uint64(len(r.entries)) {
		if q.room = r.head.Load(); tail-q.room == uint64(len(r.entries)) {
			n := &cqRing{entries: make([]entry, 2*len(r.entries))}
			r.next.Store(n)
			q.in, q.room, r, tail = n, 0, n, 0
		}
	}
	r.entries[tail&uint64(len(r.entries)-1)] = e
	r.tail.Store(tail + 1)
}

// ready reports whether there is something to take.
func (q *completions) ready() bool {
	r := q.out.Load()
	return r.tail.Load() != r.head.Load() || r.next.Load() != nil
}

// pop moves up to len(out) completions to out and gives their places back; recvs of them were receives.
func (q *completions) pop(out []transport.Completion) (n, recvs int) {
	r := q.out.Load()
	for n < len(out) {
		head := r.head.Load()
		if head == r.tail.Load() {
			next := r.next.Load()
			if next == nil {
				break
			}
			// The engine left this ring before it set next: what it has put here is seen by now.
			if head == r.tail.Load() {
				q.out.Store(next)
				r = next
			}
			continue
		}
		e := &r.entries[head&uint64(len(r.entries)-1)]
		out[n] = e.c
		n++
		if e.c.Kind == transport.OpRecv {
			recvs++
		}
		if e.s != nil {
			e.s.inflight.Add(-1)
		}
		mem.Publish(&r.head, head+1)
	}
	return n, recvs
}

// recvQueue is the shared receive queue of a domain. The engine alone takes from it.
type recvQueue struct {
	ready atomic.Int64 // buffers that can be taken

	mu   sync.Mutex
	bufs softnic.Recvs
}

func (q *recvQueue) add(bufs []transport.Recv) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	took := q.bufs.Add(bufs)
	q.ready.Store(int64(q.bufs.Len()))
	return took
}

func (q *recvQueue) take() (transport.Recv, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, ok := q.bufs.Take()
	q.ready.Store(int64(q.bufs.Len()))
	return r, ok
}

// giveBack puts a buffer that was taken, and not filled, back at the front.
func (q *recvQueue) giveBack(r transport.Recv) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bufs.GiveBack(r)
	q.ready.Store(int64(q.bufs.Len()))
}

// polled gives back the places of n receives that were reported.
func (q *recvQueue) polled(n int) {
	q.mu.Lock()
	q.bufs.Polled(n)
	q.mu.Unlock()
}
