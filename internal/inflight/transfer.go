package inflight

import (
	"fmt"
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

	forgot uint64 // the newest of its generations whose failure was forgotten, plus one; 0: none was
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

// MostUntold is how many failures are kept that no flush tells of, for handles that may have been dropped.
const MostUntold = 1 << 12

// errForgotten: whoever waits so late may have lost his failure.
var errForgotten = fmt.Errorf("how the transfer has ended is forgotten: of %d others that failed after it nobody has waited for the handle", MostUntold)

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
		t.fail(ticket{id, tr.gen.Load()}, failure{transport.NewOpError(tr.op, tr.rank, tr.err), tr.rank, tr.told})
		rank, tell = tr.rank, tr.told
	}
	tr.err = nil
	tr.gen.Add(1)
	t.closed = append(t.closed, id)
	return rank, tell
}

// fail keeps a failure until it is told. Of those that no flush tells of the oldest is forgotten where there are too many: its handle may have been dropped, and
// who has it all the same must not take what was to be brought for good.
func (t *Table) fail(k ticket, f failure) {
	t.failed[k] = f
	t.failures.Store(true)
	if f.told {
		return
	}
	if t.untold = append(t.untold, k); len(t.untold) <= MostUntold {
		return
	}
	old := t.untold[0]
	t.untold = t.untold[1:]
	if _, kept := t.failed[old]; kept {
		delete(t.failed, old)
		t.transfers[old.id].forgot = uint64(old.gen) + 1
		t.forgets = true
	}
}

// forgotten reports whether how a transfer has ended may be what was forgotten.
func (t *Table) forgotten(k ticket) bool {
	forgot := t.transfers[k.id].forgot
	return forgot != 0 && int32(k.gen-uint32(forgot-1)) <= 0
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

// Failed reports whether any transfer has failed of which nobody was told, or was forgotten. Who knows that a transfer is over sees its failure.
func (t *Table) Failed() bool { return t.failures.Load() }

// Failure returns how a transfer that is over has failed, the first time it is asked. Under the lock.
func (t *Table) Failure(id int32, gen uint32) error {
	k := ticket{id, gen}
	f, known := t.failed[k]
	if !known && t.forgotten(k) {
		return errForgotten
	}
	delete(t.failed, k)
	t.someFailed()
	return f.err
}

// someFailed has Failed say what it is to say from now on.
func (t *Table) someFailed() { t.failures.Store(t.forgets || len(t.failed) > 0) }

// Untold takes the failures of transfers to rank that a flush is to tell of and no handle has, and returns one of them. Under the lock.
func (t *Table) Untold(rank int) (err error) {
	for k, f := range t.failed {
		if f.rank == rank && f.told {
			err = f.err
			delete(t.failed, k)
		}
	}
	t.someFailed()
	return err
}
