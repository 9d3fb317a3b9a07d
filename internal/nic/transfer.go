package nic

import (
	"gopgas/internal/inflight"
	"gopgas/internal/mem"
)

// OpPut is the name of the transfers whose failure a flush tells if nobody has waited for their handle.
const OpPut = "put"

// Begin opens a transfer of one part, which PartDone ends; pieces Join it. It waits for room.
func (n *NIC) Begin(op string, rank int) (Handle, error) {
	h, ok := n.TryBegin(op, rank)
	if ok {
		return h, nil
	}
	err := n.waitInLine(&n.forTransfers, op, rank, func() bool {
		h, ok = n.TryBegin(op, rank)
		return ok
	})
	return h, err
}

// TryBegin is Begin without the waiting.
func (n *NIC) TryBegin(op string, rank int) (h Handle, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.id, h.gen, ok = n.table.TryBegin(op, rank, op == OpPut); ok {
		h.n = n
	}
	return h, ok
}

// PartDone ends the part by which Begin has opened a transfer, or a part that was not posted; the first error of a part is the transfer's.
func (n *NIC) PartDone(h Handle, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.PartDoneLocked(h, err)
}

// PartDoneLocked is PartDone for who holds Lock.
func (n *NIC) PartDoneLocked(h Handle, err error) {
	if rank, tell := n.table.PartDone(h.id, err); tell {
		n.ends[rank].bad.Store(true) // N2: nobody may wait for the handle
	}
}

// Join makes a piece, which is the caller's, a part of a transfer that is still open.
func (n *NIC) Join(h Handle, id int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.table.Join(h.id, id)
}

// JoinInto is Join for a piece that reads: what it brings is copied to dst before the transfer is over.
func (n *NIC) JoinInto(h Handle, id int32, dst mem.Range) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.table.Join(h.id, id)
	n.table.Piece(id).Into(dst)
}

// joinKept is Join for a piece that its waiter gives back.
func (n *NIC) joinKept(h Handle, id int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.table.Join(h.id, id)
	n.table.Piece(id).Mark(inflight.Kept)
}

// BeginOne opens a transfer of one piece, and takes the piece, without a slot; it waits for both at once.
func (n *NIC) BeginOne(op string, rank int) (Handle, int32, error) {
	h, id, ok := n.tryBeginOne(op, rank)
	if ok {
		return h, id, nil
	}
	err := n.waitInLine(&n.forTransfers, op, rank, func() bool {
		h, id, ok = n.tryBeginOne(op, rank)
		return ok
	})
	return h, id, err
}

func (n *NIC) tryBeginOne(op string, rank int) (h Handle, id int32, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.TryBeginOneLocked(op, rank, false)
}

// TryBeginOneLocked takes a transfer and its only piece, with a slot if wanted, or neither. The caller holds Lock.
func (n *NIC) TryBeginOneLocked(op string, rank int, slot bool) (h Handle, id int32, ok bool) {
	if !n.table.Vacant() {
		return h, 0, false
	}
	if id, ok = n.TryAcquireLocked(rank, slot); !ok {
		return h, 0, false
	}
	h.n = n
	h.id, h.gen, _ = n.table.TryBegin(op, rank, op == OpPut)
	n.table.Sole(h.id, id)
	return h, id, true
}

// BeginFetch opens a transfer of one piece, which brings a word or less that is stored in old; a flush tells of its failure too. only says
// that no other of its kind is in flight. It waits for both together: nobody who has one of them waits for the other here.
func (n *NIC) BeginFetch(name string, rank int, old mem.Range) (h Handle, id int32, only bool, err error) {
	try := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.table.Vacant() {
			return false
		}
		var ok bool
		if id, ok = n.TryAcquireLocked(rank, false); !ok {
			return false
		}
		t, gen, _ := n.table.TryBegin(name, rank, true)
		h = Handle{n: n, id: t, gen: gen}
		n.table.Sole(t, id)
		only = n.table.Fetches(id, old)
		return true
	}
	if !try() {
		err = n.waitInLine(&n.forTransfers, name, rank, try)
	}
	return h, id, only, err
}
