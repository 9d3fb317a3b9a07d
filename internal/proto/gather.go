package proto

import (
	"context"
	"errors"

	"gopgas/internal/atom"
	"gopgas/internal/errand"
	"gopgas/internal/mem"
	"gopgas/regmgr"
	"gopgas/transport"
)

// A payload for the target's CPU goes in messages: copied behind the header of each, or, where its buffer is used so often that registering
// it pays, gathered by the NIC from the header's buffer and the caller's memory (M. J. Rashti, A. Afsahi, Cluster Computing 2011, section
// 3.2). Who gathers waits for the answers, since a message may have to be sent again until there is one; so that is for who would wait
// anyway, or for whom the copy costs more, as with the bypass of puts.

// messages are what carries one payload.
type messages struct {
	name string
	kind errand.Kind // ToAccumulate or ToStore
	op   atom.Op     // of ToAccumulate
	t    atom.Elem   // likewise
	r    *Remote
	off  int // of the target's memory where the payload goes
}

// args are the arguments of the message that carries bytes from byte at of the payload on.
func (m *messages) args(at, bytes int) errand.Args {
	addr := m.r.raddr + uint64(m.off+at)
	if m.kind == errand.ToStore {
		return errand.ForBytes(m.r.rkey, addr, bytes)
	}
	return errand.ForElements(m.op, m.t, m.r.rkey, addr)
}

// most is how many bytes a message carries at most: whole elements, and whole words of what is stored.
func (m *messages) most(payload int) int {
	unit := 8
	if m.kind == errand.ToAccumulate {
		unit = m.t.Bytes
	}
	return payload / unit * unit
}

// copyAll sends src, which may be reused on return.
func (n *device) copyAll(m *messages, src mem.Range) error {
	n.e.counts.add(PathMessage, m.r.Rank, src.Bytes)
	most := m.most(n.Payload)
	for at := 0; at < src.Bytes; at += most {
		part := src.Slice(at, min(most, src.Bytes-at))
		id, err := n.Acquire(m.name, m.r.Rank, false)
		if err != nil {
			return err
		}
		if err := n.Ask(m.name, id, uint8(m.kind), m.args(at, part.Bytes), part); err != nil {
			return err
		}
	}
	return nil
}

// gatherAll is copyAll by gather. The error wraps regmgr.ErrCopy where src cannot be registered; nothing has begun then.
func (n *device) gatherAll(m *messages, src mem.Range) error {
	h, err := n.gather(m, src)
	if err != nil {
		return err
	}
	return h.Wait(context.Background())
}

// gather begins to send src, which is registered, in messages whose payload the NIC takes from there. It is the caller's again when the
// handle is done. The error wraps regmgr.ErrCopy where src cannot be registered; nothing has begun then.
func (n *device) gather(m *messages, src mem.Range) (Handle, error) {
	var all regmgr.Hold // keeps the registration until the last message has its own reference
	if err := n.holdPayload(m.name, m.r, src, &all); err != nil {
		return Handle{}, err
	}
	h, err := n.Begin(m.name, m.r.Rank)
	most := m.most(n.Payload)
	for at := 0; err == nil && at < src.Bytes; at += most {
		part := src.Slice(at, min(most, src.Bytes-at))
		var id int32
		if id, err = n.Acquire(m.name, m.r.Rank, false); err != nil {
			break
		}
		n.Join(h, id)
		if err = n.askHeld(m.name, m.r.Rank, id, m.kind, m.args(at, part.Bytes), part, &all, at+most >= src.Bytes); err != nil {
			n.PartDone(h, nil)
		}
	}
	if all.Region() != nil {
		n.direct.reg.Release(&all)
	}
	if h == (Handle{}) {
		return h, err
	}
	n.PartDone(h, nil)
	if err != nil { // what has been sent is on its way: the memory is not the caller's before it is answered
		_ = h.Wait(context.Background())
		return h, err
	}
	n.e.counts.add(PathGather, m.r.Rank, src.Bytes)
	return h, nil
}

// holdPayload has memory registered that messages are to be gathered from.
func (n *device) holdPayload(op string, r *Remote, src mem.Range, all *regmgr.Hold) error {
	err := n.direct.reg.Acquire(all, regmgr.Request{Mem: src})
	if err != nil && !errors.Is(err, regmgr.ErrCopy) {
		err = transport.NewOpError(op, r.Rank, err)
	}
	return err
}

// askHeld sends the message of piece id with part of the memory that all keeps registered. That becomes the piece's if it is the last one. On
// an error the piece is free again.
func (n *device) askHeld(op string, rank int, id int32, kind errand.Kind, args errand.Args, part mem.Range, all *regmgr.Hold, last bool) error {
	own := mem.Hidden(part) // it is registered, so it is on no stack
	hold := &n.holds[id]
	if last {
		*hold, *all = *all, regmgr.Hold{}
	} else if err := n.direct.reg.Acquire(hold, regmgr.Request{Mem: own, Of: all}); err != nil {
		n.Abandon(id)
		return transport.NewOpError(op, rank, err)
	}
	n.Lend(id)
	return n.AskLent(op, id, uint8(kind), args, transport.SGE{Mem: own, LKey: hold.LKey()})
}
