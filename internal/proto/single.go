package proto

import (
	"errors"

	"gopgas/internal/mem"
	"gopgas/regmgr"
	"gopgas/transport"
)

// single begins the transfer of part, at byte at of the user's memory, by one operation. It does what start does in one passage
// through the NIC path's lock instead of five, since of a small transfer these are a good part. The error wraps
// regmgr.ErrCopy where part cannot be registered; nothing has begun then.
func (n *nic) single(t *journey, at int, part mem.Range) (Handle, error) {
	if err := n.reach(t.name, t.r, t.off+at, part.Bytes); err != nil {
		return Handle{}, err
	}
	h, id, err := n.beginOne(t.name, t.r.Rank)
	if err != nil {
		return Handle{}, err
	}
	hold := &n.direct.holds[id] // P2: the poller's once the operation is posted, or abandon's
	if err := n.direct.reg.Acquire(hold, regmgr.Request{Mem: part, Access: t.rights()}); err != nil {
		n.abandon(id)
		n.partDone(h.id, nil)
		if !errors.Is(err, regmgr.ErrCopy) {
			err = transport.NewOpError(t.name, t.r.Rank, err)
		}
		return Handle{}, err
	}
	n.e.counts.add(t.path, t.r.Rank, part.Bytes)
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(t.off+at), RKey: t.r.rkey}
	// It is registered, so it is on no stack, and nothing is lost by hiding it from the compiler.
	op.SGE[0] = transport.SGE{Mem: mem.Hidden(part), LKey: hold.LKey()}
	if err := n.post(t.name, id, op); err != nil {
		n.partDone(h.id, nil)
		return h, err
	}
	return h, nil
}

// isSingle reports whether a transfer of so many bytes is for single.
func (n *nic) isSingle(t *journey, bytes int) bool {
	return t.r.hosed == nil && 0 < bytes && bytes <= n.caps.MaxMessage
}

// beginOne opens a transfer of one piece, and takes the piece; it waits for both at once.
func (n *nic) beginOne(op string, rank int) (Handle, int32, error) {
	h, id, ok := n.tryBeginOne(op, rank)
	if ok {
		return h, id, nil
	}
	err := n.waitUntil(op, rank, func() bool {
		h, id, ok = n.tryBeginOne(op, rank)
		return ok
	})
	return h, id, err
}

func (n *nic) tryBeginOne(op string, rank int) (h Handle, id int32, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tryBeginOneLocked(op, rank, false)
}

// tryBeginOneLocked takes a transfer and its only piece, with a slot if wanted, or neither.
func (n *nic) tryBeginOneLocked(op string, rank int, slot bool) (h Handle, id int32, ok bool) {
	if !n.table.Vacant() {
		return h, 0, false
	}
	if id, ok = n.tryAcquireLocked(rank, slot); !ok {
		return h, 0, false
	}
	h.n = n
	h.id, h.gen, _ = n.table.TryBegin(op, rank, op == opPut)
	n.table.Sole(h.id, id)
	return h, id, true
}
