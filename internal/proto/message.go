package proto

import (
	"encoding/binary"
	"fmt"
	"math"

	"gopgas/internal/am"
	"gopgas/internal/atom"
	"gopgas/internal/errand"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// messageCookies and up are completions of active messages.
const messageCookies = 1 << 63

// askHose is the first handler of package hose; those of package errand come before.
const askHose = uint8(errand.Kinds)

// Handlers of leases, which come after those of package hose.
const (
	askLease  = askHose + uint8(hose.Kinds) + iota // args: key, address, bytes; payload: a superpipe.Offer, the layout of pieces. Reply: its length and a superpipe.Grant, or 0: not now
	askPull                                        // args: key, address, bytes; payload: a superpipe.Grant, the layout of pieces. Reply: its length and a superpipe.Offer, or 0: not now
	askReturn                                      // args: generation, tag: the receiver has its lease back. Reply: 1, or 0: ask again
	askStop                                        // args: generation: no more into this lease of the sender's. Reply: 1: it will be returned, or 0
)

// Statuses of replies.
const (
	statusOK        = errand.OK
	statusRefused   = errand.Refused
	statusMalformed = errand.Malformed
)

// arrived handles the completion of an active message.
func (n *nic) arrived(c *transport.Completion) {
	r, ok, err := n.am.Arrived(c)
	if !ok {
		return // a request, done; or one that is nobody's, which is the sender's fault
	}
	if err != nil && c.Status == transport.StatusFlushed {
		err = fmt.Errorf("%w: %w", errConnectionLost, err) // it was sent before: it may have arrived
	}
	if r.Cookie&hose.Cookie != 0 {
		n.hoses.Answered(r.Cookie, r.Status, r.Payload, err)
		_ = n.am.Release(r)
		return
	}
	if r.Cookie&noteCookie != 0 {
		n.leases.answered(r, err)
		_ = n.am.Release(r)
		return
	}
	id := int32(r.Cookie)
	if err == nil && r.Status != statusOK {
		err = errRefused
	}
	if err == nil && n.table.Fetched(id) && len(r.Payload) == 8 {
		n.table.Piece(id).Dst.SetBits(binary.LittleEndian.Uint64(r.Payload))
	}
	if err == nil && n.table.Piece(id).Keep {
		// A reply that does not fit was not made by this program; what fits is as wrong as the rest.
		buf, _ := n.buffer(id, min(len(r.Payload), n.table.Capacity(id)))
		copy(buf.Data(), r.Payload)
	}
	n.ends[n.table.Piece(id).Rank].asked.Add(-1)
	n.settle(id, err)
	_ = n.am.Release(r) // fails only when the NIC is closing
}

// handle performs a request of a peer. It runs in the poller and waits for nothing.
func (n *nic) handle(r am.Request, out []byte) (int, uint8) {
	if k := r.Handler - askHose; k < uint8(hose.Kinds) && n.hoses != nil {
		b, ok := n.hoses.Handle(hose.Kind(k), r.From, r.Payload, out) // which may register: not under a lock
		if !ok {
			return 0, statusMalformed
		}
		return b, statusOK
	}
	switch r.Handler {
	case askReturn, askStop:
		return n.leases.noted(r, out)
	case askLease:
		if n.leases.target != nil {
			n.leases.ready() // which may register: not under a lock
		}
	}
	whole, ok := n.exposed.Hold(r.Args[0])
	defer n.exposed.Release()
	switch {
	case !ok:
		return 0, statusRefused
	case r.Handler == askLease || r.Handler == askPull:
		part, ok := errand.Within(whole, r.Args[1], int(min(r.Args[2], math.MaxInt)))
		if !ok || r.From < 0 || r.From >= n.e.Size {
			return 0, statusRefused
		}
		return n.leases.serve(r, part, out)
	}
	return errand.Perform(errand.Kind(r.Handler), r.Args, r.Payload, whole, out)
}

// ask sends a request for piece id; it waits for a connection and a credit. On an error the piece is free again.
func (n *nic) ask(name string, id int32, handler uint8, args [4]uint64, payload mem.Range) error {
	rank := n.table.Piece(id).Rank
	e := &n.ends[rank]
	e.asked.Add(1)
	var sent bool
	var refused, err error
	try := func() bool {
		if !n.tryEnter(rank) {
			return e.state.Load() == epNone
		}
		defer e.leave()
		if !n.push() {
			return false
		}
		sent, refused = n.am.Request(e.now(), rank, handler, args, payload.Data(), uint64(id))
		return sent || refused != nil
	}
	for !sent && refused == nil && err == nil {
		if _, err = n.enter(name, rank); err == nil {
			e.leave() // it is the request's sending that must not be cut off, not its wait for a credit
			err = n.waitUntil(name, rank, try)
		}
	}
	if sent {
		return nil
	}
	if err == nil {
		err = transport.NewOpError(name, rank, refused)
	}
	e.asked.Add(-1)
	n.abandon(id)
	return err
}

// askedAtomic has the target's CPU perform an atomic and returns the old value.
func (n *nic) askedAtomic(op atom.Op, t atom.Elem, r *Remote, off int, x, y uint64) (uint64, error) {
	name := op.String()
	if err := n.reach(name, r, off, t.Bytes); err != nil {
		return 0, err
	}
	k, err := n.keep(name, r.Rank, false, true)
	if err != nil {
		return 0, err
	}
	args, what := errand.ForAtomic(op, t, r.rkey, r.raddr+uint64(off), x, y)
	if err := n.ask(name, k.id, uint8(errand.ToAtomic), args, mem.Of(what[:])); err != nil {
		n.partDone(k.h.id, nil)
		return 0, err
	}
	n.e.counts.add(PathMessage, r.Rank, t.Bytes)
	return n.take(k)
}

// askedAccumulate has the target's CPU combine src into its memory; it returns when src may be reused.
func (n *nic) askedAccumulate(op atom.Op, t atom.Elem, r *Remote, off int, src mem.Range) error {
	const name = "accumulate"
	if err := n.reach(name, r, off, src.Bytes); err != nil {
		return err
	}
	n.e.counts.add(PathMessage, r.Rank, src.Bytes)
	most := n.am.MaxPayload() / t.Bytes * t.Bytes
	for src.Bytes > 0 {
		part := src.Slice(0, min(src.Bytes, most))
		id, err := n.acquire(name, r.Rank, false)
		if err != nil {
			return err
		}
		args := errand.ForElements(op, t, r.rkey, r.raddr+uint64(off))
		if err := n.ask(name, id, uint8(errand.ToAccumulate), args, part); err != nil {
			return err
		}
		src = src.Slice(part.Bytes, src.Bytes-part.Bytes)
		off += part.Bytes
	}
	return nil
}
