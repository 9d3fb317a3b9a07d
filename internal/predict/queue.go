package predict

import (
	"sync/atomic"

	"gopgas/internal/mem"
)

// Queue is the DQ: a bounded ring of uses from any number of producers to one consumer. Make one with NewQueue.
//
// Each slot carries a sequence number. A producer claims a slot only when the number says that it has been read, and the
// consumer reads it only when the number says that it has been written, so neither ever sees half of an entry. A producer that
// is held up between the two holds up the consumer, nobody else.
type Queue struct {
	slots []slot
	mask  uint64
	_     [40]byte
	head  atomic.Uint64 // slots claimed by producers
	lost  atomic.Uint64
	_     [48]byte
	tail  uint64 // the consumer's: entries read
}

// slot is two lines of a processor's cache, of which no other slot has a part.
type slot struct {
	seq atomic.Uint64 // position: free for that entry; position + 1: holds it
	use Use
	_   [16]byte
}

// DefaultQueue is the number of entries of a DQ. They fill 8 KiB; the paper's ring has 5.6 KB.
const DefaultQueue = 64

// NewQueue returns an empty queue of at least entries slots, a power of two; 0 means DefaultQueue. Two are the least: by the number of a single one nobody could tell
// whether it holds an entry or is free for the next.
func NewQueue(entries int) *Queue {
	if entries <= 0 {
		entries = DefaultQueue
	}
	n := 2
	for n < entries {
		n *= 2
	}
	q := &Queue{slots: make([]slot, n), mask: uint64(n - 1)}
	for i := range q.slots {
		q.slots[i].seq.Store(uint64(i))
	}
	return q
}

// Put adds a use, or loses it when the queue is full, and reports which. It never waits and does not allocate. The
// transfer has completed and its reference to the region has been dropped: a reference forbids giving it back.
func (q *Queue) Put(u *Use) bool {
	for {
		at := q.head.Load()
		s := &q.slots[at&q.mask]
		switch seq := s.seq.Load(); {
		case seq == at:
			if q.head.CompareAndSwap(at, at+1) {
				s.use = *u
				mem.Publish(&s.seq, at+1)
				return true
			}
		case seq < at: // what was put there a round ago has not been read
			q.lost.Add(1)
			return false
		}
		// Another producer was faster.
	}
}

// Heard returns how many uses have been put, those lost included.
func (q *Queue) Heard() uint64 { return q.head.Load() + q.lost.Load() }

// take moves the oldest use to u.
func (q *Queue) take(u *Use) bool {
	s := &q.slots[q.tail&q.mask]
	if s.seq.Load() != q.tail+1 {
		return false
	}
	*u = s.use
	mem.Publish(&s.seq, q.tail+uint64(len(q.slots)))
	q.tail++
	return true
}

// front returns the oldest use, which stays, or nil.
func (q *Queue) front() *Use {
	s := &q.slots[q.tail&q.mask]
	if s.seq.Load() != q.tail+1 {
		return nil
	}
	return &s.use
}

// Lost returns how many uses found the queue full.
func (q *Queue) Lost() uint64 { return q.lost.Load() }
