package predict

import "sync/atomic"

// Queue is the DQ: a bounded ring of uses from one producer at a time to one consumer. Make one with NewQueue.
//
// Each slot carries a sequence number. The producer writes a slot only when the number says that it has been read, and
// the consumer reads it only when the number says that it has been written, so neither ever sees half of an entry.
type Queue struct {
	slots []slot
	mask  uint64
	_     [40]byte
	head  uint64 // the producer's: entries written
	lost  atomic.Uint64
	_     [48]byte
	tail  uint64 // the consumer's: entries read
}

type slot struct {
	seq atomic.Uint64 // position: free for that entry; position + 1: holds it
	use Use
}

// DefaultQueue is the number of entries of a DQ. They fill 10 KiB; the paper's ring has 5.6 KB.
const DefaultQueue = 64

// NewQueue returns an empty queue of at least entries slots, a power of two; 0 means DefaultQueue.
func NewQueue(entries int) *Queue {
	if entries <= 0 {
		entries = DefaultQueue
	}
	n := 1
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
	s := &q.slots[q.head&q.mask]
	if s.seq.Load() != q.head {
		q.lost.Add(1)
		return false
	}
	s.use = *u
	s.seq.Store(q.head + 1)
	q.head++
	return true
}

// take moves the oldest use to u.
func (q *Queue) take(u *Use) bool {
	s := &q.slots[q.tail&q.mask]
	if s.seq.Load() != q.tail+1 {
		return false
	}
	*u = s.use
	s.seq.Store(q.tail + uint64(len(q.slots)))
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
