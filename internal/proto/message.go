package proto

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"gopgas/internal/am"
	"gopgas/internal/atom"
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// messageCookies and up are completions of active messages.
const messageCookies = 1 << 63

// Handlers of active messages.
const (
	askAtomic        = iota + 1 // args: key, address, x, y; payload: operation, kind, bytes. Reply: the old value
	askAccumulate               // args: key, address, operation | kind<<8 | bytes<<16; payload: elements
	askGetAccumulate            // as askAccumulate. Reply: the old elements
	askHose                     // the first of those of package hose
)

// Handlers that come after those of package hose.
const (
	askStore  = askHose + uint8(hose.Kinds) + iota // args: key, address; payload: bytes
	askLoad                                        // args: key, address, how many. Reply: the bytes
	askListed                                      // args: key, 0, operation | kind<<8 | bytes<<16 | fetches; payload: addresses, elements. Reply: the old elements, or nothing
	askLease                                       // args: key, address, bytes; payload: a superpipe.Offer, the layout of pieces. Reply: its length and a superpipe.Grant, or 0: not now
	askPull                                        // args: key, address, bytes; payload: a superpipe.Grant, the layout of pieces. Reply: its length and a superpipe.Offer, or 0: not now
	askReturn                                      // args: generation, tag: the receiver has its lease back. Reply: 1, or 0: ask again
	askStop                                        // args: generation: no more into this lease of the sender's. Reply: 1: it will be returned, or 0
)

// Statuses of replies.
const (
	statusOK = iota
	statusRefused
	statusMalformed
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
	if err == nil && n.piece[id].fetch && len(r.Payload) == 8 {
		n.piece[id].dst.SetBits(binary.LittleEndian.Uint64(r.Payload))
	}
	if err == nil && n.piece[id].keep {
		// A reply that does not fit was not made by this program; what fits is as wrong as the rest.
		buf, _ := n.buffer(id, min(len(r.Payload), n.capacity(id)))
		copy(buf.Data(), r.Payload)
	}
	n.ends[n.piece[id].rank].asked.Add(-1)
	n.settle(id, err)
	_ = n.am.Release(r) // fails only when the NIC is closing
}

// capacity is the size of piece id's buffer.
func (n *nic) capacity(id int32) int {
	if n.piece[id].slot >= 0 {
		return n.pool.SlotBytes()
	}
	return scratchBytes
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
	n.exposing.RLock()
	defer n.exposing.RUnlock()
	whole, ok := n.exposed[r.Args[0]]
	if !ok {
		return 0, statusRefused
	}
	switch r.Handler {
	case askAtomic:
		if len(r.Payload) != 3 {
			return 0, statusMalformed
		}
		t := atom.Elem{Kind: reflect.Kind(r.Payload[1]), Bytes: int(r.Payload[2])}
		part, ok := within(whole, r.Args[1], t.Bytes)
		if !ok || t.Check(atom.Op(r.Payload[0])) != nil || !t.Fits(r.Args[1]) {
			return 0, statusRefused
		}
		old := atom.Do(atom.Op(r.Payload[0]), t, part, 0, r.Args[2], r.Args[3])
		binary.LittleEndian.PutUint64(out, old)
		return 8, statusOK
	case askAccumulate, askGetAccumulate:
		op, t := atom.Op(r.Args[2]), atom.Elem{Kind: reflect.Kind(r.Args[2] >> 8 & 0xff), Bytes: int(r.Args[2] >> 16 & 0xff)}
		part, ok := within(whole, r.Args[1], len(r.Payload))
		if !ok || op >= atom.CompareSwap || t.Check(op) != nil || !t.Fits(r.Args[1]) || len(r.Payload)%t.Bytes != 0 {
			return 0, statusRefused
		}
		if r.Handler == askGetAccumulate {
			atom.FetchAccumulate(op, t, part, mem.Of(r.Payload), mem.Of(out[:len(r.Payload)]))
			return len(r.Payload), statusOK
		}
		atom.Accumulate(op, t, part, mem.Of(r.Payload))
		return 0, statusOK
	case askListed:
		return listed(&r, whole, out)
	case askStore:
		part, ok := within(whole, r.Args[1], len(r.Payload))
		if !ok {
			return 0, statusRefused
		}
		store(part, mem.Of(r.Payload))
		return 0, statusOK
	case askLoad:
		if r.Args[2] > uint64(len(out)) {
			return 0, statusMalformed
		}
		part, ok := within(whole, r.Args[1], int(r.Args[2]))
		if !ok {
			return 0, statusRefused
		}
		load(mem.Of(out[:part.Bytes]), part)
		return part.Bytes, statusOK
	case askLease, askPull:
		part, ok := within(whole, r.Args[1], int(min(r.Args[2], math.MaxInt)))
		if !ok || r.From < 0 || r.From >= n.e.Size {
			return 0, statusRefused
		}
		return n.leases.serve(r, part, out)
	}
	return 0, statusMalformed
}

// store writes src to exposed memory, a word as one: whoever polls it sees the old value or the new one.
func store(dst, src mem.Range) {
	if dst.Bytes == 8 && dst.Addr()%8 == 0 {
		dst.Word64(0).Store(src.Bits())
		return
	}
	copy(dst.Data(), src.Data())
}

// load reads exposed memory, a word as one.
func load(dst, src mem.Range) {
	if src.Bytes == 8 && src.Addr()%8 == 0 {
		dst.SetBits(src.Word64(0).Load())
		return
	}
	copy(dst.Data(), src.Data())
}

// within returns the n bytes at address addr of whole.
func within(whole mem.Range, addr uint64, n int) (mem.Range, bool) {
	off := addr - whole.Addr()
	if addr < whole.Addr() || off > uint64(whole.Bytes) || n > whole.Bytes-int(off) {
		return mem.Range{}, false
	}
	return whole.Slice(int(off), n), true
}

// ask sends a request for piece id; it waits for a connection and a credit. On an error the piece is free again.
func (n *nic) ask(name string, id int32, handler uint8, args [4]uint64, payload mem.Range) error {
	rank := n.piece[id].rank
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
	what := [3]byte{byte(op), byte(t.Kind), byte(t.Bytes)}
	args := [4]uint64{r.rkey, r.raddr + uint64(off), x, y}
	if err := n.ask(name, k.id, askAtomic, args, mem.Of(what[:])); err != nil {
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
		args := [4]uint64{r.rkey, r.raddr + uint64(off), uint64(op) | uint64(t.Kind)<<8 | uint64(t.Bytes)<<16}
		if err := n.ask(name, id, askAccumulate, args, part); err != nil {
			return err
		}
		src = src.Slice(part.Bytes, src.Bytes-part.Bytes)
		off += part.Bytes
	}
	return nil
}
