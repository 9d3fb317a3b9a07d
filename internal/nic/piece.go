package nic

import (
	"context"
	"errors"

	"gopgas/internal/inflight"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// ErrNoRoom says that no piece, slot or transfer is free now, to who must not wait for one.
var ErrNoRoom = errors.New("no room")

// Acquire takes a piece, and a slot if wanted, for an operation to rank; it waits for them. Who holds pieces already
// that only he can free must not wait for more: see TryAcquire. The piece is the caller's until Post has it, or Abandon.
func (n *NIC) Acquire(op string, rank int, slot bool) (int32, error) {
	id, ok := n.TryAcquire(rank, slot)
	if ok {
		return id, nil
	}
	err := n.waitInLine(&n.forPieces, op, rank, func() bool {
		if id, ok = n.TryAcquire(rank, slot); !ok {
			n.hasten(-1) // those that are lazy may have them all
		}
		return ok
	})
	return id, err
}

// TryAcquire is Acquire without the waiting.
func (n *NIC) TryAcquire(rank int, slot bool) (id int32, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.TryAcquireLocked(rank, slot)
}

// TryAcquireLocked is TryAcquire for who holds Lock.
func (n *NIC) TryAcquireLocked(rank int, slot bool) (id int32, ok bool) {
	if id, ok = n.table.TryAcquire(rank, slot); ok {
		n.beganLocked(n.ends[rank], n.table.Piece(id), id)
	}
	return id, ok
}

// tryAsideLocked is TryAcquireLocked of a piece that is kept aside for what others may wait for who have all the others. It has no buffer.
func (n *NIC) tryAsideLocked(rank int) (id int32, ok bool) {
	if id, ok = n.table.TakeAside(rank); ok {
		n.beganLocked(n.ends[rank], n.table.Piece(id), id)
	}
	return id, ok
}

// Abandon frees a piece that was not posted. A transfer that it is a part of is told by PartDone.
func (n *NIC) Abandon(id int32) {
	n.landed(id)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.AbandonLocked(id)
}

// AbandonLocked is Abandon for who holds Lock, of a piece to which nothing is lent.
func (n *NIC) AbandonLocked(id int32) {
	n.addedLocked(id)
	p := n.table.Piece(id)
	n.endedLocked(n.ends[p.Rank], id)
	if p.Unmark(inflight.Tied) {
		n.client.LetGoLocked(id)
	}
	n.table.Free(id)
}

// Lend has Client.Landed called when piece id ends, once. The piece is the caller's.
func (n *NIC) Lend(id int32) { n.table.Piece(id).Mark(inflight.Lent) }

// landed tells the client of the end of a piece to which he has lent something.
func (n *NIC) landed(id int32) {
	if p := n.table.Piece(id); p.Unmark(inflight.Lent) {
		p.Forget()
		n.client.Landed(id)
	}
}

// Tie has Client.LetGoLocked called when piece id ends, once. The piece is the caller's.
func (n *NIC) Tie(id int32) { n.table.Piece(id).Mark(inflight.Tied) }

// Buffer is the NIC memory of piece id for so many bytes, and its key. It belongs to who has the piece.
func (n *NIC) Buffer(id int32, bytes int) (mem.Range, uint64) { return n.table.Buffer(id, bytes) }

// Kept is an operation whose result its waiter takes from the piece's buffer, and then gives the piece back.
type Kept struct {
	Handle
	ID int32 // the piece
}

// Keep takes a piece that its waiter gives back, with a slot if wanted, and a transfer of it, for an operation to rank. Without leave to
// wait it fails with ErrNoRoom where it would have to.
func (n *NIC) Keep(name string, rank int, slot, wait bool) (Kept, error) {
	// Whoever holds pieces that wait for him does not wait at all.
	k, ok := n.tryKeep(name, rank, slot)
	switch {
	case ok:
		return k, nil
	case !wait:
		return Kept{}, ErrNoRoom
	}
	err := n.waitInLine(&n.forTransfers, name, rank, func() bool {
		if k, ok = n.tryKeep(name, rank, slot); !ok {
			n.hasten(-1)
		}
		return ok
	})
	return k, err
}

func (n *NIC) tryKeep(name string, rank int, slot bool) (k Kept, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.TryKeepLocked(name, rank, slot)
}

// TryKeepLocked is Keep for who holds Lock: it does not wait.
func (n *NIC) TryKeepLocked(name string, rank int, slot bool) (k Kept, ok bool) {
	if k.Handle, k.ID, ok = n.TryBeginOneLocked(name, rank, slot); ok {
		n.table.Piece(k.ID).Mark(inflight.Kept)
	}
	return k, ok
}

// Awaited makes piece id, which is the caller's, one that he waits for with Await as soon as he has posted it, and then gives back. It
// needs no transfer.
func (n *NIC) Awaited(id int32) { n.table.Piece(id).Mark(inflight.Awaited) }

// Await returns when piece id, which is Awaited, has ended, with its error. Its result is in its buffer then.
func (n *NIC) Await(name string, id int32) error {
	p := n.table.Piece(id)
	vain := !p.Over() && n.lookFirst()
	if p.Over() && p.Err() == nil {
		return nil
	}
	return n.await(name, p, vain)
}

// await is Await for who may have looked in vain already, or has found an error.
func (n *NIC) await(name string, p *inflight.Piece, vain bool) error {
	if !p.Over() {
		// No watch: while the NIC has it, the piece is not its waiter's to give back.
		if err := n.waitFor(context.Background(), sched.What{Op: name, Peer: p.Rank}, nil, vain, goal{piece: p}); err != nil {
			return err
		}
	}
	if p.Err() == nil {
		return nil
	}
	return n.explain(name, p.Rank, transport.NewOpError(name, p.Rank, p.Err()))
}

// PostKept posts op with a kept piece for a result of so many bytes.
func (n *NIC) PostKept(name string, rank int, op transport.Op, bytes int, slot, wait bool) (Kept, error) {
	k, err := n.Keep(name, rank, slot, wait)
	if err != nil {
		return Kept{}, err
	}
	buf, key := n.Buffer(k.ID, bytes)
	op.NSGE = 1
	op.SGE[0] = transport.SGE{Mem: buf, LKey: key}
	if err := n.Post(name, k.ID, op); err != nil {
		n.PartDone(k.Handle, nil)
		return Kept{}, err
	}
	return k, nil
}

// Take waits for a kept word and gives the piece back.
func (n *NIC) Take(k Kept) (uint64, error) {
	err := k.Wait(context.Background())
	buf, _ := n.Buffer(k.ID, 8)
	word := buf.Word64(0).Load()
	n.Give(k.ID)
	return word, err
}

// Give gives a kept piece back when the wait for its operation has ended. Where this rank's own NIC is what ended it, the operation may still be
// under way until the Domain is closed: the piece stays taken, so that its result does not land in what another one sends.
func (n *NIC) Give(id int32) {
	if n.closed.Load() {
		return
	}
	n.mu.Lock()
	n.table.Free(id)
	n.mu.Unlock()
}
