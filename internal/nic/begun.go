package nic

import (
	"slices"

	"gopgas/internal/inflight"
	"gopgas/internal/mem"
)

// What is begun to a rank is numbered from 1 on: pieces, and what Began counts. A flush waits for what was begun before it, whatever others begin
// meanwhile. As long as nobody does, or much less is over than that, two counts tell; only then somebody looks at all pieces.

// beganLocked counts piece id, which its rank is to be sent.
func (n *NIC) beganLocked(e *endpoint, p *inflight.Piece, id int32) {
	number := e.began.Load() + 1
	n.table.Number(p, id, number)
	mem.Publish(&e.began, number)
}

// endedLocked counts piece id as over. It comes last: who waits for this finds nothing left.
func (n *NIC) endedLocked(e *endpoint, id int32) {
	n.table.Unnumber(id)
	mem.Publish(&e.ended, e.ended.Load()+1)
}

// report is leaveLocked and endedLocked for who polls, and needs no lock for it. The piece has no number any more.
func (e *endpoint) report() { mem.Publish(&e.reported, e.reported.Load()+1) }

// over is how much is over: pieces, and what Began has counted.
func (e *endpoint) over() uint64 { return e.ended.Load() + e.reported.Load() }

// pending is how much is in flight. What is over is asked first: then nothing was in flight if as much has begun, though it was asked later.
func (e *endpoint) pending() uint64 {
	over := e.over()
	return e.began.Load() - over
}

// past reports whether all is over that e's rank was sent up to the number mark.
func (n *NIC) past(e *endpoint, mark uint64) bool {
	over := e.over()
	switch began := e.began.Load(); {
	case began == over:
		return true
	case began == mark, over < mark: // nothing else is in flight; not so much is over
		return false
	case mark <= e.clear.Load():
		return true
	case over == e.lookedAt.Load():
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	mem.Publish(&e.lookedAt, over) // what ends while somebody looks is looked for again
	oldest := n.table.Oldest(e.rank, e.began.Load()+1)
	for _, number := range e.flights {
		oldest = min(oldest, number)
	}
	mem.Publish(&e.clear, oldest-1)
	return mark < oldest
}

// Begun is the number of what rank was sent last.
func (n *NIC) Begun(rank int) uint64 { return n.ends[rank].began.Load() }

// Past reports whether all is over that rank was sent up to a number of Begun's.
func (n *NIC) Past(rank int, number uint64) bool { return n.past(n.ends[rank], number) }

// Pending reports whether anything of this rank is in flight to rank.
func (n *NIC) Pending(rank int) bool { return n.ends[rank].pending() != 0 }

// Began counts something against rank that is more than pieces, by a number of its own: until Ended flushes wait for it, and nothing is
// ordered behind it.
func (n *NIC) Began(rank int) (number uint64) {
	e := n.ends[rank]
	n.mu.Lock()
	number = e.began.Load() + 1
	e.flights = append(e.flights, number)
	mem.Publish(&e.began, number)
	n.mu.Unlock()
	e.begun.Add(1)
	return number
}

// Ended ends what Began has counted. An error is the next flush's to tell.
func (n *NIC) Ended(rank int, number uint64, err error) {
	e := n.ends[rank]
	e.begun.Add(-1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		e.blameLocked(err)
	}
	if i := slices.Index(e.flights, number); i >= 0 {
		last := len(e.flights) - 1
		e.flights[i] = e.flights[last]
		e.flights = e.flights[:last]
	}
	mem.Publish(&e.ended, e.ended.Load()+1) // last: who waits for this finds nothing left
}
