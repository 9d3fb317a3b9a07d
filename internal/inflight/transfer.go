package inflight

import (
	"sync/atomic"

	"gopgas/internal/invariants"
	"gopgas/transport"
)

// transfer is what a handle waits for: one or more pieces.
type transfer struct {
	gen  atomic.Uint32 // grows when the transfer is done
	left int           // parts not done: pieces, and what keeps it open while they are being posted
	err  error
	op   string
	rank int
	told bool // it changes the target's memory, and a flush tells of its failure if nobody has waited for it
}

// ticket is a transfer by number and generation.
type ticket struct {
	id  int32
	gen uint32
}

// failure is how a transfer has failed, and whether a flush may tell.
type failure struct {
	err  error
	rank int
	told bool
}

// TryBegin opens a transfer of one part, which PartDone ends, and returns its number and generation; ok is false where none is free.
// If told is set the next flush of rank tells of its failure unless a handle has. Under the lock.
func (t *Table) TryBegin(op string, rank int, told bool) (id int32, gen uint32, ok bool) {
	if len(t.closed) == 0 {
		return 0, 0, false
	}
	id = t.closed[len(t.closed)-1]
	t.closed = t.closed[:len(t.closed)-1]
	tr := &t.transfers[id]
	tr.left, tr.rank, tr.op, tr.told = 1, rank, op, told
	return id, tr.gen.Load(), true
}

// Vacant reports whether TryBegin would open a transfer. Under the lock.
func (t *Table) Vacant() bool { return len(t.closed) > 0 }

// Sole makes a piece the one part of the transfer that TryBegin has opened it with. Under the lock.
func (t *Table) Sole(id, piece int32) {
	p := &t.pieces[piece]
	p.transfer = id
	p.Mark(joined)
}

// Join adds a piece to the parts of a transfer that is still open. Under the lock.
func (t *Table) Join(id, piece int32) {
	t.transfers[id].left++
	t.Sole(id, piece)
}

// PartDone counts one part of a transfer as done. The first error of a part is the transfer's. If tell is set the next flush of
// rank has something to tell of: see Untold. Under the lock.
func (t *Table) PartDone(id int32, err error) (rank int, tell bool) {
	tr := &t.transfers[id]
	if err != nil && tr.err == nil {
		tr.err = err
	}
	tr.left--
	invariants.Check(tr.left >= 0, "a transfer has more parts done than it has") // F4
	if tr.left > 0 {
		return 0, false
	}
	if tr.err != nil {
		t.failed[ticket{id, tr.gen.Load()}] = failure{transport.NewOpError(tr.op, tr.rank, tr.err), tr.rank, tr.told}
		t.failures.Store(true)
		rank, tell = tr.rank, tr.told
	}
	tr.err = nil
	tr.gen.Add(1)
	t.closed = append(t.closed, id)
	return rank, tell
}

// Over reports whether a transfer has ended.
func (t *Table) Over(id int32, gen uint32) bool { return t.transfers[id].gen.Load() != gen }

// What says what a transfer is; ok is false where it has ended. Under the lock.
func (t *Table) What(id int32, gen uint32) (op string, rank int, ok bool) {
	if tr := &t.transfers[id]; tr.gen.Load() == gen {
		return tr.op, tr.rank, true
	}
	return "", 0, false
}

// Failed reports whether any transfer has failed of which nobody was told. Who knows that a transfer is over sees its failure.
func (t *Table) Failed() bool { return t.failures.Load() }

// Failure returns how a transfer that is over has failed, the first time it is asked. Under the lock.
func (t *Table) Failure(id int32, gen uint32) error {
	f := t.failed[ticket{id, gen}]
	delete(t.failed, ticket{id, gen})
	t.failures.Store(len(t.failed) > 0)
	return f.err
}

// Untold takes the failures of transfers to rank that a flush is to tell of and no handle has, and returns one of them. Under the lock.
func (t *Table) Untold(rank int) (err error) {
	for k, f := range t.failed {
		if f.rank == rank && f.told {
			err = f.err
			delete(t.failed, k)
		}
	}
	t.failures.Store(len(t.failed) > 0)
	return err
}
