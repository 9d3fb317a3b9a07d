package proto

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/regmgr"
	"gopgas/transport"
)

// What follows posts the operations of direct transfers: single those that are one operation, start all.

// single begins the transfer of part, at byte at of the user's memory, by one operation. It does what start does in one passage
// through the NIC path's lock instead of five, since of a small transfer these are a good part. The error wraps
// regmgr.ErrCopy where part cannot be registered; nothing has begun then.
func (n *device) single(t *journey, at int, part mem.Range) (Handle, error) {
	if err := n.reach(t.name, t.r, t.off+at, part.Bytes); err != nil {
		return Handle{}, err
	}
	h, id, err := n.BeginOne(t.name, t.r.Rank)
	if err != nil {
		return Handle{}, err
	}
	hold := &n.holds[id] // P2: the poller's from Lend on, or Abandon's
	if err := n.direct.reg.Acquire(hold, regmgr.Request{Mem: part, Access: t.rights()}); err != nil {
		n.Abandon(id)
		n.PartDone(h, nil)
		if !errors.Is(err, regmgr.ErrCopy) {
			err = transport.NewOpError(t.name, t.r.Rank, err)
		}
		return Handle{}, err
	}
	n.Lend(id)
	n.e.counts.add(t.path, t.r.Rank, part.Bytes)
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(t.off+at), RKey: t.r.rkey}
	// It is registered, so it is on no stack, and nothing is lost by hiding it from the compiler.
	op.SGE[0] = transport.SGE{Mem: mem.Hidden(part), LKey: hold.LKey()}
	if t.blocking {
		err = n.PostAwaited(t.name, id, op)
	} else {
		err = n.Post(t.name, id, op)
	}
	if err != nil {
		n.PartDone(h, nil)
	}
	return h, err
}

// lend makes a hold that of piece id: the poller's from here on, or Abandon's.
func (n *device) lend(id int32, hold regmgr.Hold) {
	n.holds[id] = hold
	n.Lend(id)
}

// isSingle reports whether a transfer of so many bytes is for single.
func (n *device) isSingle(t *journey, bytes int) bool {
	return t.r.hosed == nil && 0 < bytes && bytes <= n.Caps.MaxMessage
}

// start begins the transfer of part, at byte at of the user's memory. The error wraps regmgr.ErrCopy where part cannot be
// registered; nothing has begun then.
func (n *device) start(t *journey, at int, part mem.Range) (Handle, error) {
	if t.r.hosed != nil {
		return n.hosedStart(t, t.off+at, part)
	}
	if err := n.reach(t.name, t.r, t.off+at, part.Bytes); err != nil {
		return Handle{}, err
	}
	var all regmgr.Hold // keeps the registration until the last piece has its own reference
	if err := n.direct.reg.Acquire(&all, regmgr.Request{Mem: part, Access: t.rights()}); err != nil {
		if !errors.Is(err, regmgr.ErrCopy) {
			err = transport.NewOpError(t.name, t.r.Rank, err)
		}
		return Handle{}, err
	}
	h, err := n.Begin(t.name, t.r.Rank)
	if err != nil {
		n.direct.reg.Release(&all)
		return Handle{}, err
	}
	n.e.counts.add(t.path, t.r.Rank, part.Bytes)
	for done := 0; done < part.Bytes && err == nil; {
		bytes := min(part.Bytes-done, n.Caps.MaxMessage)
		err = n.startPiece(*t, h, &all, t.off+at+done, part.Slice(done, bytes), done+bytes == part.Bytes)
		done += bytes
	}
	if all.Region() != nil {
		n.direct.reg.Release(&all)
	}
	n.PartDone(h, nil)
	if err != nil { // what has been posted is on its way: the user's memory is not his before it has arrived
		_ = h.Wait(context.Background())
	}
	return h, err
}

// startPiece posts one operation of transfer h, between piece and the target's bytes at off. all, which keeps the transfer's
// memory registered, becomes the piece's if that is the last one.
func (n *device) startPiece(t journey, h Handle, all *regmgr.Hold, off int, piece mem.Range, last bool) error {
	id, err := n.Acquire(t.name, t.r.Rank, false)
	if err != nil {
		return err
	}
	var hold regmgr.Hold
	if last {
		hold, *all = *all, regmgr.Hold{}
	} else if err = n.direct.reg.Acquire(&hold, regmgr.Request{Mem: piece, Access: t.rights(), Of: all}); err != nil {
		n.Abandon(id)
		return transport.NewOpError(t.name, t.r.Rank, err)
	}
	// It is registered, so it is on no stack, and nothing is lost by hiding it from the compiler.
	return n.postHeld(t, h, id, hold, mem.Hidden(piece), off, t.r.rkey)
}

// postHeld posts a piece of transfer h, between part, which hold keeps registered, and the target's bytes at off under key. The hold and
// the piece are given back by whoever sees the end of it, also on an error.
func (n *device) postHeld(t journey, h Handle, id int32, hold regmgr.Hold, part mem.Range, off int, key uint64) error {
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(off), RKey: key}
	op.SGE[0] = transport.SGE{Mem: part, LKey: hold.LKey()}
	n.Join(h, id)
	n.lend(id, hold)
	err := n.Post(t.name, id, op)
	if err != nil {
		n.PartDone(h, nil)
	}
	return err
}
