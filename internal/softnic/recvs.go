package softnic

import "gopgas/transport"

// Recvs are the buffers of a shared receive queue, oldest first. The caller has it to itself: a NIC keeps a lock around it.
type Recvs struct {
	ring  []transport.Recv
	first int
	n     int
	owned int // added and not yet polled: what Add is bounded by
}

// NewRecvs makes a queue for so many buffers, counted until their receives have been polled.
func NewRecvs(most int) Recvs { return Recvs{ring: make([]transport.Recv, most)} }

// Len is how many buffers can be taken.
func (q *Recvs) Len() int { return q.n }

// Add adds buffers as long as there is room, and returns how many.
func (q *Recvs) Add(bufs []transport.Recv) int {
	took := 0
	for took < len(bufs) && q.owned < len(q.ring) {
		q.ring[(q.first+q.n)%len(q.ring)] = bufs[took]
		q.n++
		q.owned++
		took++
	}
	return took
}

// Take takes the oldest buffer.
func (q *Recvs) Take() (transport.Recv, bool) {
	if q.n == 0 {
		return transport.Recv{}, false
	}
	r := q.ring[q.first]
	q.ring[q.first] = transport.Recv{}
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	return r, true
}

// GiveBack puts a buffer that was taken, and not filled, back at the front.
func (q *Recvs) GiveBack(r transport.Recv) {
	q.first = (q.first + len(q.ring) - 1) % len(q.ring)
	q.ring[q.first] = r
	q.n++
}

// Polled gives back the places of n receives that were reported.
func (q *Recvs) Polled(n int) { q.owned -= n }
