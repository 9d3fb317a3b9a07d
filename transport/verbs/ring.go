package verbs

import (
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// record is one posted operation.
type record struct {
	cookie   uint64
	ep       transport.EP
	bytes    uint32
	lkeys    [4]uint32 // of its pieces, for the way of an error
	pieces   uint8     // that have keys
	kind     transport.Kind
	signaled bool // by the caller
	asked    bool // the NIC was asked to report it: for the caller, or so that there is room again
}

// ring holds the records of one pair. Posters, under domain.post, add at the tail; the poller, under domain.poll,
// takes from the head. Its length is a power of two.
type ring struct {
	recs       []record
	limit      uint32
	head, tail atomic.Uint32
}

func newRing(limit int) ring {
	n := 1
	for n < limit {
		n *= 2
	}
	return ring{recs: make([]record, n), limit: uint32(limit)}
}

// full reports whether there is no room for another record (W1).
func (r *ring) full() bool { return r.tail.Load()-r.head.Load() >= r.limit }

// at returns the record with a number between head and tail.
func (r *ring) at(i uint32) *record { return &r.recs[i&uint32(len(r.recs)-1)] }

// next is the place of the record that is added next, and its number. The ring is not full.
func (r *ring) next() (rec *record, i uint32) {
	i = r.tail.Load()
	return r.at(i), i
}

// add appends the record that was written to the next place.
func (r *ring) add() { mem.Publish32(&r.tail, r.tail.Load()+1) }
