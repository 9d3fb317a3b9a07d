package tcp

import (
	"slices"
	"sync"
	"sync/atomic"

	"gopgas/internal/softnic"
	"gopgas/transport"
)

// entry is one entry of the completion queue: a completion, or only places to be given back (Kind 0). Places go
// through the queue so that only who polls is ordered after what was done.
type entry struct {
	c      transport.Completion
	l      *link // whose places; nil for receives and the ends of peers
	places int32
}

// completions is a domain's completion queue.
type completions struct {
	count atomic.Int64 // entries, to be looked at without the lock
	sent  atomic.Int64 // of them, of what peers have sent; likewise

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
		q.growLocked() // only by connections that went and came again and again unpolled
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = e
	q.n++
	q.count.Store(int64(q.n))
	if e.c.Kind == transport.OpRecv {
		q.sent.Add(1)
	}
	q.mu.Unlock()
}

// pop moves up to len(out) completions to out and gives their places back; recvs of them were receives.
func (q *completions) pop(out []transport.Completion) (n, recvs int) {
	if q.count.Load() == 0 {
		return 0, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.n > 0 {
		e := &q.ring[q.first]
		if e.c.Kind != 0 {
			if n == len(out) {
				break
			}
			out[n] = e.c
			n++
			if e.c.Kind == transport.OpRecv {
				recvs++
			}
		}
		if e.l != nil {
			e.l.inflight.Add(-e.places)
		}
		*e = entry{}
		q.first = (q.first + 1) & (len(q.ring) - 1)
		q.n--
	}
	q.count.Store(int64(q.n))
	if recvs > 0 {
		q.sent.Add(-int64(recvs))
	}
	return n, recvs
}

// recvQueue is the shared receive queue of a domain, and the links whose messages wait for a buffer.
type recvQueue struct {
	mu      sync.Mutex
	bufs    softnic.Recvs
	waiting []*link // oldest first; each at most once
}

func (q *recvQueue) add(bufs []transport.Recv) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bufs.Add(bufs)
}

// take takes the oldest buffer. Where there is none, l is the next to hear of one.
func (q *recvQueue) take(l *link) (transport.Recv, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, ok := q.bufs.Take()
	if !ok {
		q.waiting = append(q.waiting, l)
	}
	return r, ok
}

// giveBack puts a buffer that was taken, and not filled, back at the front.
func (q *recvQueue) giveBack(r transport.Recv) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bufs.GiveBack(r)
}

// next returns a link that waits, if there is a buffer for it beside those for the already told.
func (q *recvQueue) next(told int) *link {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.bufs.Len() <= told {
		return nil
	}
	l := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	return l
}

// leave forgets a link that has ended, if it waits.
func (q *recvQueue) leave(l *link) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, l); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// polled gives back the places of n receives that were reported.
func (q *recvQueue) polled(n int) {
	q.mu.Lock()
	q.bufs.Polled(n)
	q.mu.Unlock()
}
