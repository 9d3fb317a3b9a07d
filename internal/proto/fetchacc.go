package proto

import (
	"context"
	"errors"

	"gopgas/internal/atom"
	"gopgas/internal/errand"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/regmgr"
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
	case w == byMessage || n.cpuToo():
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
func (n *device) askedGetAccumulate(op atom.Op, t atom.Elem, r *Remote, off int, src, old mem.Range) error {
	const name = "get-accumulate"
	if err := n.reachElements(name, r, off, src.Bytes, t.Bytes); err != nil {
		return err
	}
	most := min(n.Payload, n.Slot) / t.Bytes * t.Bytes
	var all regmgr.Hold // of src, if it is not copied
	path := PathMessage
	if n.gathers(true, src) {
		switch err := n.holdPayload(name, r, src, &all); {
		case err == nil:
			path = PathGather
			defer func() {
				if all.Region() != nil {
					n.direct.reg.Release(&all)
				}
			}()
		case !errors.Is(err, regmgr.ErrCopy):
			return err
		}
	}
	n.e.counts.add(path, r.Rank, src.Bytes)
	for src.Bytes > 0 {
		bytes := min(src.Bytes, most)
		k, err := n.Keep(name, r.Rank, bytes > nic.ScratchBytes, true)
		if err != nil {
			return err
		}
		args := errand.ForElements(op, t, r.rkey, r.raddr+uint64(off))
		if path == PathGather {
			err = n.askHeld(name, r.Rank, k.ID, errand.ToGetAccumulate, args, src.Slice(0, bytes), &all, bytes == src.Bytes)
		} else {
			err = n.Ask(name, k.ID, uint8(errand.ToGetAccumulate), args, src.Slice(0, bytes))
		}
		if err != nil {
			n.PartDone(k.Handle, nil)
			return err
		}
		if err = k.Wait(context.Background()); err == nil {
			buf, _ := n.Buffer(k.ID, bytes)
			copy(old.Data()[:bytes], buf.Data())
		}
		n.Give(k.ID)
		if err != nil {
			return err
		}
		src, old = src.Slice(bytes, src.Bytes-bytes), old.Slice(bytes, old.Bytes-bytes)
		off += bytes
	}
	return nil
}
