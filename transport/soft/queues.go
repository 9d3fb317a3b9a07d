package soft

import (
	"sync"
	"sync/atomic"

	"gopgas/transport"
)

// entry is one completion and the seat whose place it gives back, if any.
type entry struct {
	c transport.Completion
	s *seat
}

// completions is a domain's completion queue. The engine fills it, Poll empties it.
type completions struct {
	count atomic.Int64 // entries, to be looked at without the lock

	mu    sync.Mutex
	ring  []entry // a power of two, or empty
	first int
	n     int
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
	next := make([]entry, max(64, 2*len(q.ring)))
	for i := range q.n {
		next[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
	}
	q.ring, q.first = next, 0
}

func (q *completions) push(e entry) {
	q.mu.Lock()
	if q.n == len(q.ring) {
		q.growLocked() // only by reports of peers that went and came again and again unpolled
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = e
	q.n++
	q.count.Store(int64(q.n))
	q.mu.Unlock()
}

// pop moves up to len(out) completions to out and gives their places back; recvs of them were receives.
func (q *completions) pop(out []transport.Completion) (n, recvs int) {
	if q.count.Load() == 0 {
		return 0, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for n < len(out) && q.n > 0 {
		e := &q.ring[q.first]
		out[n] = e.c
		n++
		if e.c.Kind == transport.OpRecv {
			recvs++
		}
		if e.s != nil {
			e.s.inflight.Add(-1)
		}
		*e = entry{}
		q.first = (q.first + 1) & (len(q.ring) - 1)
		q.n--
	}
	q.count.Store(int64(q.n))
	return n, recvs
}

// recvQueue is the shared receive queue of a domain. The engine alone takes from it.
type recvQueue struct {
	ready atomic.Int64 // buffers that can be taken

	mu    sync.Mutex
	ring  []transport.Recv
	first int
	n     int
	owned int // posted and not yet polled: what PostRecv is bounded by
}

func (q *recvQueue) add(bufs []transport.Recv) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	took := 0
	for took < len(bufs) && q.owned < len(q.ring) {
		q.ring[(q.first+q.n)%len(q.ring)] = bufs[took]
		q.n++
		q.owned++
		took++
	}
	q.ready.Store(int64(q.n))
	return took
}

func (q *recvQueue) take() (transport.Recv, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		return transport.Recv{}, false
	}
	r := q.ring[q.first]
	q.ring[q.first] = transport.Recv{}
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	q.ready.Store(int64(q.n))
	return r, true
}

// giveBack puts a buffer that was taken, and not filled, back at the front.
func (q *recvQueue) giveBack(r transport.Recv) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first = (q.first + len(q.ring) - 1) % len(q.ring)
	q.ring[q.first] = r
	q.n++
	q.ready.Store(int64(q.n))
}

// polled gives back the places of n receives that were reported.
func (q *recvQueue) polled(n int) {
	q.mu.Lock()
	q.owned -= n
	q.mu.Unlock()
}
