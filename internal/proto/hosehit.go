package proto

import (
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/regmgr"
	"gopgas/transport"
)

// An operation on one bucket that is held takes what it needs under one lock: it costs what it does on memory that is
// registered as a whole, and the look-up. Whatever else it would have to do or to wait for, the longer way does.

// aimLocked takes a firehose on the bucket that bytes at off of r lie in, if it is held, for the piece that is taken next. With transfer
// there must be one of these for it, too.
func (n *device) aimLocked(r *Remote, off, bytes int, transfer bool) (next int32, key uint64, ok bool) {
	next, ok = n.NextLocked(transfer)
	if !ok || r.Rank == n.e.Rank {
		return 0, 0, false
	}
	key, ok = n.hoses.TryLocked(next, r.hosed, r.raddr+uint64(off), bytes)
	return next, key, ok
}

// hitLocked follows aimLocked, and the taking of the piece: where that was not to be had for want of a slot the firehose is let go of.
func (n *device) hitLocked(next int32, taken bool, r *Remote, read bool) bool {
	if !taken {
		n.hoses.ReleaseLocked(next)
		return false
	}
	n.Tie(next)
	n.hoses.NoteLocked(next, r.hosed, read)
	return true
}

// hold gets a firehose for piece id where that takes no wait.
func (n *device) hold(id int32, r *Remote, off, bytes int, read bool) (key uint64, ok bool) {
	n.Lock()
	defer n.Unlock()
	addr := r.raddr + uint64(off)
	if key, ok = n.hoses.TryLocked(id, r.hosed, addr, bytes); ok {
		n.Tie(id)
		n.hoses.NoteLocked(id, r.hosed, read)
	}
	return key, ok
}

// hosedPutHit is hosedPut where one operation on a bucket that is held will do. What goes inline and may stay here, since the caller will
// flush or wait, is left to the next post. hit is false where nothing has begun.
func (n *device) hosedPutHit(op string, r *Remote, off int, src mem.Range, later bool) (hit bool, err error) {
	if src.Bytes > n.Slot || src.Bytes == 0 || n.reach(op, r, off, src.Bytes) != nil {
		return false, nil
	}
	path, flags := PathBounce, uint8(0)
	if src.Bytes <= n.Inline {
		path, flags = PathInline, transport.FlagInline
	}
	n.Lock()
	id, key, ok := n.aimLocked(r, off, src.Bytes, false)
	if ok {
		_, ok = n.TryAcquireLocked(r.Rank, path == PathBounce)
		ok = n.hitLocked(id, ok, r, false)
	}
	if ok {
		n.e.counts.addLocked(path, r.Rank, src.Bytes)
	}
	n.Unlock()
	if !ok {
		return false, nil
	}
	_, buf := n.Lay(id, transport.OpWrite, flags, src.Bytes, r.raddr+uint64(off), key)
	mem.Copy(buf.Data(), src.Data())
	n.e.Sched.ChargeCopy(src.Bytes, src.Bytes)
	if later && path == PathInline {
		return true, n.PostLaidLater(op, id)
	}
	return true, n.PostLaid(op, id)
}

// hosedGetHit is hosedPutHit's inverse.
func (n *device) hosedGetHit(op string, r *Remote, off int, dst mem.Range) (hit bool, err error) {
	if dst.Bytes > n.Slot || dst.Bytes == 0 || n.reach(op, r, off, dst.Bytes) != nil {
		return false, nil
	}
	n.Lock()
	id, key, ok := n.aimLocked(r, off, dst.Bytes, false)
	if ok {
		_, ok = n.TryAcquireLocked(r.Rank, dst.Bytes > nic.ScratchBytes)
		ok = n.hitLocked(id, ok, r, true)
	}
	if ok {
		n.e.counts.addLocked(PathBounce, r.Rank, dst.Bytes)
	}
	n.Unlock()
	if !ok {
		return false, nil
	}
	_, buf := n.Lay(id, transport.OpRead, 0, dst.Bytes, r.raddr+uint64(off), key)
	return true, n.fill(op, id, dst, buf)
}

// hosedStartHit is hosedStart where one operation on a bucket that is held will do. all is its operation's then; if hit is
// false nothing has begun.
func (n *device) hosedStartHit(t journey, off int, user mem.Range, all *regmgr.Hold) (h Handle, hit bool, err error) {
	if user.Bytes > n.Caps.MaxMessage {
		return h, false, nil
	}
	n.Lock()
	id, key, ok := n.aimLocked(t.r, off, user.Bytes, true)
	if ok {
		h, _, ok = n.TryBeginOneLocked(t.name, t.r.Rank, false)
		ok = n.hitLocked(id, ok, t.r, t.kind == transport.OpRead)
	}
	n.Unlock()
	if !ok {
		return Handle{}, false, nil
	}
	n.lend(id, *all)
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(off), RKey: key}
	op.SGE[0] = transport.SGE{Mem: mem.Hidden(user), LKey: all.LKey()}
	n.e.counts.add(t.path, t.r.Rank, user.Bytes)
	if err := n.Post(t.name, id, op); err != nil {
		n.PartDone(h, nil)
		return Handle{}, true, err
	}
	return h, true, nil
}
