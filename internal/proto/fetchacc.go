package proto

import (
	"context"

	"gopgas/internal/atom"
	"gopgas/internal/errand"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// GetAccumulate combines the elements of src into those from byte off on, each atomically, and stores what they were in
// old, which has the bytes of src and may be src itself. The path is that of Atomic; through a NIC as many elements as
// it can are under way at once.
func (e *Engine) GetAccumulate(op atom.Op, t atom.Elem, r *Remote, off int, src, old mem.Range) error {
	const name = "get-accumulate"
	if r.cpuAtomics() {
		e.note(PathAtomic, r.Rank, src.Bytes)
		atom.FetchAccumulate(op, t, r.Mapped.Slice(off, src.Bytes), src, old)
		return nil
	}
	n := e.nic()
	if err := n.destination(name, r.Rank, old); err != nil {
		return err
	}
	switch w := n.wayTo(r, op, t); {
	case w == nowhere:
		return transport.NewOpError(name, r.Rank, errNoAtomics)
	case w == byMessage || n.caps.AtomicsCPU && n.am != nil:
		return n.askedGetAccumulate(op, t, r, off, src, old)
	case w == native:
		c := e.chains.take(n, name)
		var err error
		for at := 0; at < src.Bytes && err == nil; at += t.Bytes {
			err = c.fetchAdd(r, off+at, src.Slice(at, t.Bytes).Bits(), old, at)
		}
		return e.chains.finish(c, old, err)
	}
	for at := 0; at < src.Bytes; at += t.Bytes {
		was, err := e.Atomic(op, t, r, off+at, src.Slice(at, t.Bytes).Bits(), 0)
		if err != nil {
			return err
		}
		old.Slice(at, t.Bytes).SetBits(was)
	}
	return nil
}

// askedGetAccumulate has the target's CPU combine src into its memory and send back what was there.
func (n *nic) askedGetAccumulate(op atom.Op, t atom.Elem, r *Remote, off int, src, old mem.Range) error {
	const name = "get-accumulate"
	if err := n.reach(name, r, off, src.Bytes); err != nil {
		return err
	}
	n.e.counts.add(PathMessage, r.Rank, src.Bytes)
	most := min(n.am.MaxPayload(), n.pool.SlotBytes()) / t.Bytes * t.Bytes
	for src.Bytes > 0 {
		bytes := min(src.Bytes, most)
		k, err := n.keep(name, r.Rank, bytes > scratchBytes, true)
		if err != nil {
			return err
		}
		args := errand.ForElements(op, t, r.rkey, r.raddr+uint64(off))
		if err := n.ask(name, k.id, uint8(errand.ToGetAccumulate), args, src.Slice(0, bytes)); err != nil {
			n.partDone(k.h.id, nil)
			return err
		}
		if err = k.h.Wait(context.Background()); err == nil {
			buf, _ := n.buffer(k.id, bytes)
			copy(old.Data()[:bytes], buf.Data())
		}
		n.give(k)
		if err != nil {
			return err
		}
		src, old = src.Slice(bytes, src.Bytes-bytes), old.Slice(bytes, old.Bytes-bytes)
		off += bytes
	}
	return nil
}
