package transporttest

import (
	"sync"
	"sync/atomic"

	"gopgas/internal/softnic"
	"gopgas/transport"
)

// slot is one operation in an endpoint's queue.
type slot struct {
	op    transport.Op
	ready int64 // nanoseconds of the fabric's clock before which it is not performed; jitter
}

// end is one rank's end of a connection, of one incarnation. Posters fill the ring under their domain's mu,
// the domain's agent empties it.
type end struct {
	ep   transport.EP
	peer *domain
	link *link

	ring     []slot
	inline   []byte        // MaxInline bytes for each slot
	tail     atomic.Uint64 // operations posted
	head     uint64        // operations performed; the agent's
	inflight atomic.Int64  // L1: posted and not yet polled
	lastDue  int64         // when the newest slot is ready; under domain.mu
	quiet    int64         // performed without a report since the last entry in the queue; the agent's
	detached atomic.Bool   // replaced or disconnected: forget it when it is empty
	sawGone  bool          // the first operation after the peer's end has been reported as such; the agent's
}

func newEnd(c *FabricConfig, ep transport.EP, peer *domain, l *link) *end {
	return &end{
		ep: ep, peer: peer, link: l,
		ring: make([]slot, c.MaxPost), inline: make([]byte, c.MaxPost*c.MaxInline),
	}
}

// link is what the two ends of a connection have in common.
type link struct{ state atomic.Int32 }

// States of a link. A link only ever leaves linkUp.
const (
	linkUp     int32 = iota
	linkBroken       // an error or a Disconnect at one of the ends
	linkGone         // one of the ranks is gone
)

func (l *link) breakUp(state int32) { l.state.CompareAndSwap(linkUp, state) }

// entry is one entry of the completion queue: a completion, or only places to be given back (Kind 0).
type entry struct {
	c      transport.Completion
	e      *end // whose places; nil for receives and peer-downs
	places int64
}

// completions is a domain's completion queue. The zero queue is ready.
type completions struct {
	mu      sync.Mutex
	ring    []entry // a power of two, or empty
	first   int
	entries int
	count   atomic.Int32 // entries, to be looked at without the lock
	recvs   atomic.Int32 // receives among them, likewise
}

// reserve makes room for n entries, so that push does not allocate.
func (q *completions) reserve(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ring) < n {
		q.growLocked()
	}
}

func (q *completions) growLocked() {
	next := make([]entry, max(16, 2*len(q.ring)))
	for i := range q.entries {
		next[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
	}
	q.ring, q.first = next, 0
}

func (q *completions) push(e entry) {
	q.mu.Lock()
	if q.entries == len(q.ring) {
		q.growLocked() // ends of older incarnations whose completions nobody has polled
	}
	q.ring[(q.first+q.entries)&(len(q.ring)-1)] = e
	q.entries++
	if e.c.Kind == transport.OpRecv {
		q.recvs.Add(1)
	}
	q.count.Store(int32(q.entries))
	q.mu.Unlock()
}

// pop moves up to len(out) completions to out and gives their places back; recvs of them were receives.
func (q *completions) pop(out []transport.Completion) (n, recvs int) {
	if q.count.Load() == 0 {
		return 0, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.entries > 0 {
		e := &q.ring[q.first]
		if e.c.Kind != 0 {
			if n == len(out) {
				break
			}
			out[n] = e.c
			n++
			if e.c.Kind == transport.OpRecv {
				recvs++
				q.recvs.Add(-1)
			}
		}
		if e.e != nil {
			e.e.inflight.Add(-e.places)
		}
		*e = entry{}
		q.first = (q.first + 1) & (len(q.ring) - 1)
		q.entries--
	}
	q.count.Store(int32(q.entries))
	return n, recvs
}

// recvQueue is the shared receive queue of a domain.
type recvQueue struct {
	mu   sync.Mutex
	bufs softnic.Recvs
}

func (q *recvQueue) add(bufs []transport.Recv) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bufs.Add(bufs)
}

func (q *recvQueue) take() (transport.Recv, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bufs.Take()
}

// polled gives back the places of n receives that were reported.
func (q *recvQueue) polled(n int) {
	q.mu.Lock()
	q.bufs.Polled(n)
	q.mu.Unlock()
}
