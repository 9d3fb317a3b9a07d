package proto

import (
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/regmgr"
	"gopgas/transport"
)

// An operation on one bucket that is held takes what it needs under one lock: it costs what it does on memory that is
// registered as a whole, and the look-up. Whatever else it would have to do or to wait for, the longer way does.

// aimLocked has piece id hold a firehose on the bucket that bytes at off of r lie in, if that is held.
func (n *device) aimLocked(id int32, r *Remote, off, bytes int, read bool) (key uint64, ok bool) {
	if key, ok = n.hoses.TryLocked(id, r.hosed, r.raddr+uint64(off), bytes); ok {
		n.Tie(id)
		n.hoses.NoteLocked(id, r.hosed, read)
	}
	return key, ok
}

// hold is aimLocked for who does not hold Lock. It does not call that: who foresees the next use counts the frames to the transfer.
func (n *device) hold(id int32, r *Remote, off, bytes int, read bool) (key uint64, ok bool) {
	n.Lock()
	defer n.Unlock()
	if key, ok = n.hoses.TryLocked(id, r.hosed, r.raddr+uint64(off), bytes); ok {
		n.Tie(id)
		n.hoses.NoteLocked(id, r.hosed, read)
	}
	return key, ok
}

// hit is an operation on one bucket that is held, between memory of this rank's and the target's.
type hit struct {
	op    string
	path  Path
	kind  transport.Kind
	flags uint8
	slot  bool // its piece has one
}

// layHit takes a piece, and a firehose for it, and lays the operation. ok is false where nothing has begun.
func (n *device) layHit(h hit, r *Remote, off, bytes int) (laid *nic.Laid, ok bool, err error) {
	if bytes > n.Slot || bytes == 0 || r.Rank == n.e.Rank || n.reach(h.op, r, off, bytes) != nil {
		return nil, false, nil
	}
	n.Lock()
	id, ok := n.TryAcquireLocked(r.Rank, h.slot)
	if ok {
		var key uint64
		if key, ok = n.hoses.TryLocked(id, r.hosed, r.raddr+uint64(off), bytes); ok {
			n.Tie(id)
			n.hoses.NoteLocked(id, r.hosed, h.kind == transport.OpRead) // from here: who foresees the next use counts the frames to the transfer
			n.e.counts.addLocked(h.path, r.Rank, bytes)
			n.Lay(id, h.kind, h.flags, bytes, r.raddr+uint64(off), key)
			laid = n.EnterLocked(id)
		} else {
			n.AbandonLocked(id)
		}
	}
	n.Unlock()
	if ok && laid == nil {
		laid, err = n.Enter(h.op, id)
	}
	return laid, ok, err
}

// hosedPutHit is hosedPut where one operation on a bucket that is held will do. What goes inline and may stay here, since the caller will
// flush or wait, is left to the next post. hits is false where nothing has begun.
func (n *device) hosedPutHit(op string, r *Remote, off int, src mem.Range, later bool) (hits bool, err error) {
	h := hit{op: op, path: PathBounce, kind: transport.OpWrite, slot: true}
	if src.Bytes <= n.Inline {
		h.path, h.flags, h.slot = PathInline, transport.FlagInline, false
	}
	laid, hits, err := n.layHit(h, r, off, src.Bytes)
	if laid == nil {
		return hits, err
	}
	mem.Copy(laid[0].SGE[0].Mem.Data(), src.Data())
	n.e.Sched.ChargeCopy(src.Bytes, src.Bytes)
	if later && h.path == PathInline {
		return true, n.SendLater(op, laid)
	}
	return true, n.Send(op, laid)
}

// hosedGetHit is hosedPutHit's inverse.
func (n *device) hosedGetHit(op string, r *Remote, off int, dst mem.Range) (hits bool, err error) {
	h := hit{op: op, path: PathBounce, kind: transport.OpRead, slot: dst.Bytes > nic.ScratchBytes}
	laid, hits, err := n.layHit(h, r, off, dst.Bytes)
	if laid == nil {
		return hits, err
	}
	if err = n.Carry(op, laid, dst); err == nil {
		n.e.Sched.ChargeCopy(dst.Bytes, dst.Bytes)
	}
	return true, err
}

// hosedStartHit is hosedStart where one operation on a bucket that is held will do. all is its operation's then; if hit is
// false nothing has begun.
func (n *device) hosedStartHit(t journey, off int, user mem.Range, all *regmgr.Hold) (h Handle, hit bool, err error) {
	if user.Bytes > n.Caps.MaxMessage || t.r.Rank == n.e.Rank {
		return h, false, nil
	}
	n.Lock()
	h, id, ok := n.TryBeginOneLocked(t.name, t.r.Rank, false)
	var key uint64
	if ok {
		if key, ok = n.aimLocked(id, t.r, off, user.Bytes, t.kind == transport.OpRead); !ok {
			n.AbandonLocked(id)
			n.PartDoneLocked(h, nil)
		}
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
