package sim

import "gopgas/transport"

// entry is one entry of a completion queue: a completion, or only places to be given back (Kind 0).
type entry struct {
	c      transport.Completion
	e      *end // whose places; nil for receives and deaths
	places int
}

// completions is a completion queue. The zero queue is ready.
type completions struct {
	ring        []entry // a power of two, or empty
	first, n    int
	completions int // entries that are completions
}

func (q *completions) push(e entry) {
	if e.c.Kind == 0 && q.n > 0 {
		// Places of the same endpoint need one entry only.
		if last := &q.ring[(q.first+q.n-1)&(len(q.ring)-1)]; last.e == e.e {
			last.places += e.places
			return
		}
	}
	if q.n == len(q.ring) {
		next := make([]entry, max(8, 2*len(q.ring)))
		for i := range q.n {
			next[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
		}
		q.ring, q.first = next, 0
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = e
	q.n++
	if e.c.Kind != 0 {
		q.completions++
	}
}

// pop moves up to len(out) completions to out and gives their places back; recvs of them were receives.
func (q *completions) pop(out []transport.Completion) (n, recvs int) {
	for q.n > 0 {
		e := &q.ring[q.first]
		if e.c.Kind != 0 {
			if n == len(out) {
				break
			}
			out[n] = e.c
			n++
			q.completions--
			if e.c.Kind == transport.OpRecv {
				recvs++
			}
		}
		if e.e != nil {
			e.e.inflight -= e.places
		}
		*e = entry{}
		q.first = (q.first + 1) & (len(q.ring) - 1)
		q.n--
	}
	return n, recvs
}

// recvQueue is a shared receive queue.
type recvQueue struct {
	bufs  []transport.Recv
	first int
	owned int // posted and not yet polled: what PostRecv is bounded by
}

func (q *recvQueue) add(r transport.Recv) {
	if len(q.bufs) == cap(q.bufs) && q.first > len(q.bufs)/2 { // who posts a buffer for each that is taken never leaves it empty
		n := copy(q.bufs, q.bufs[q.first:])
		clear(q.bufs[n:])
		q.bufs, q.first = q.bufs[:n], 0
	}
	q.bufs = append(q.bufs, r)
	q.owned++
}

func (q *recvQueue) take() (transport.Recv, bool) {
	if q.first == len(q.bufs) {
		return transport.Recv{}, false
	}
	r := q.bufs[q.first]
	q.bufs[q.first] = transport.Recv{}
	if q.first++; q.first == len(q.bufs) {
		q.bufs, q.first = q.bufs[:0], 0
	}
	return r, true
}

// putBack returns a buffer that was taken and not used.
func (q *recvQueue) putBack(r transport.Recv) {
	if q.first > 0 {
		q.first--
		q.bufs[q.first] = r
		return
	}
	q.bufs = append([]transport.Recv{r}, q.bufs...)
}
