package proto

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/regmgr"
	"gopgas/transport"
)

// An operation on one bucket that is held takes what it needs under one lock: it costs what it does on memory that is
// registered as a whole, and the look-up. Whatever else it would have to do or to wait for, the longer way does.

// hitLocked takes a piece, with a firehose on the bucket that bytes at off of r lie in, if the bucket is held and a piece is free.
func (n *nic) hitLocked(r *Remote, off, bytes int, slot, read bool) (id int32, key uint64, ok bool) {
	next, some := n.table.Next()
	if !some || r.Rank == n.e.Rank {
		return 0, 0, false
	}
	addr := r.raddr + uint64(off)
	if key, ok = n.hoses.TryLocked(next, r.hosed, addr, bytes); !ok {
		return 0, 0, false
	}
	if id, ok = n.tryAcquireLocked(r.Rank, slot); !ok {
		n.hoses.ReleaseLocked(next)
		return 0, 0, false
	}
	n.table.Piece(id).Hosed = true
	n.hoses.NoteLocked(id, r.hosed, addr, read)
	return id, key, true
}

// hold gets a firehose for piece id where that takes no wait.
func (n *nic) hold(id int32, r *Remote, off, bytes int, read bool) (key uint64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	addr := r.raddr + uint64(off)
	if key, ok = n.hoses.TryLocked(id, r.hosed, addr, bytes); ok {
		n.table.Piece(id).Hosed = true
		n.hoses.NoteLocked(id, r.hosed, addr, read)
	}
	return key, ok
}

// hosedPutHit is hosedPut where one operation on a bucket that is held will do. hit is false where nothing has begun.
func (n *nic) hosedPutHit(op string, r *Remote, off int, src mem.Range) (hit bool, err error) {
	if src.Bytes > n.pool.SlotBytes() || src.Bytes == 0 || n.reach(op, r, off, src.Bytes) != nil {
		return false, nil
	}
	n.mu.Lock()
	id, key, ok := n.hitLocked(r, off, src.Bytes, src.Bytes > n.inline, false)
	n.mu.Unlock()
	if !ok {
		return false, nil
	}
	buf, lkey := n.buffer(id, src.Bytes)
	copy(buf.Data(), src.Data())
	n.e.Sched.ChargeCopy(src.Bytes, src.Bytes)
	wr := transport.Op{Kind: transport.OpWrite, NSGE: 1, RAddr: r.raddr + uint64(off), RKey: key}
	wr.SGE[0] = transport.SGE{Mem: buf, LKey: lkey}
	path := PathBounce
	if src.Bytes <= n.inline {
		wr.Flags, path = transport.FlagInline, PathInline
	}
	n.e.counts.add(path, r.Rank, src.Bytes)
	return true, n.post(op, id, wr)
}

// hosedGetHit is hosedPutHit's inverse.
func (n *nic) hosedGetHit(op string, r *Remote, off int, dst mem.Range) (hit bool, err error) {
	if dst.Bytes > n.pool.SlotBytes() || dst.Bytes == 0 || n.reach(op, r, off, dst.Bytes) != nil {
		return false, nil
	}
	n.mu.Lock()
	if !n.table.Vacant() {
		n.mu.Unlock()
		return false, nil
	}
	id, key, ok := n.hitLocked(r, off, dst.Bytes, dst.Bytes > scratchBytes, true)
	if !ok {
		n.mu.Unlock()
		return false, nil
	}
	h, _ := n.tryBeginLocked(op, r.Rank)
	n.table.Sole(h.id, id)
	n.table.Piece(id).Keep = true
	n.mu.Unlock()
	buf, lkey := n.buffer(id, dst.Bytes)
	rd := transport.Op{Kind: transport.OpRead, NSGE: 1, RAddr: r.raddr + uint64(off), RKey: key}
	rd.SGE[0] = transport.SGE{Mem: buf, LKey: lkey}
	n.e.counts.add(PathBounce, r.Rank, dst.Bytes)
	if err := n.post(op, id, rd); err != nil {
		n.partDone(h.id, nil)
		return true, err
	}
	if err = h.Wait(context.Background()); err == nil {
		copy(dst.Data(), buf.Data())
		n.e.Sched.ChargeCopy(dst.Bytes, dst.Bytes)
	}
	n.give(kept{h, id})
	return true, err
}

// hosedStartHit is hosedStart where one operation on a bucket that is held will do. all is its operation's then; if hit is
// false nothing has begun.
func (n *nic) hosedStartHit(t journey, off int, user mem.Range, all *regmgr.Hold) (h Handle, hit bool, err error) {
	if user.Bytes > n.caps.MaxMessage {
		return h, false, nil
	}
	n.mu.Lock()
	if !n.table.Vacant() {
		n.mu.Unlock()
		return h, false, nil
	}
	id, key, ok := n.hitLocked(t.r, off, user.Bytes, false, t.kind == transport.OpRead)
	if !ok {
		n.mu.Unlock()
		return h, false, nil
	}
	h, _ = n.tryBeginLocked(t.name, t.r.Rank)
	n.table.Sole(h.id, id)
	n.direct.holds[id] = *all // P2: the poller's from here on, or abandon's
	n.mu.Unlock()
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(off), RKey: key}
	op.SGE[0] = transport.SGE{Mem: mem.Hidden(user), LKey: all.LKey()}
	n.e.counts.add(t.path, t.r.Rank, user.Bytes)
	if err := n.post(t.name, id, op); err != nil {
		n.partDone(h.id, nil)
		return Handle{}, true, err
	}
	return h, true, nil
}
