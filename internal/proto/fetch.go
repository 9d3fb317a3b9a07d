package proto

import (
	"gopgas/internal/atom"
	"gopgas/internal/errand"
	"gopgas/internal/mem"
	"gopgas/internal/timeline"
	"gopgas/internal/trace"
	"gopgas/transport"
)

// AtomicNB begins what Atomic does. old, which is as large as the element, gets what was there, and belongs to the engine until
// the handle is done. The path is that of Atomic. What the CPU does at once is over on return; so is what the NIC does not do by
// itself and the target's CPU must not, since it is made of compare-swaps. It may wait for room.
func (e *Engine) AtomicNB(op atom.Op, t atom.Elem, r *Remote, off int, x, y uint64, old mem.Range) (Handle, error) {
	if r.cpuAtomics() || e.record == nil {
		return e.atomicNB(op, t, r, off, x, y, old)
	}
	v := e.record.visit(timeline.Transfer, op.Fetch(), r.Rank)
	h, err := e.atomicNB(op, t, r, off, x, y, old)
	e.record.atomic(&v, trace.Atomic, r, off, t.Bytes)
	e.record.over(&v, t.Bytes)
	return h, err
}

func (e *Engine) atomicNB(op atom.Op, t atom.Elem, r *Remote, off int, x, y uint64, old mem.Range) (Handle, error) {
	if r.cpuAtomics() {
		e.note(PathAtomic, r.Rank, t.Bytes)
		old.SetBits(atom.Do(op, t, r.Mapped, off, x, y))
		return Handle{}, nil
	}
	n := e.nic()
	if err := n.destination(op.Fetch(), r.Rank, old); err != nil {
		return Handle{}, err
	}
	switch n.wayTo(r, op, t) {
	case native:
		return n.fetch(op, r, off, x, y, old)
	case byMessage:
		return n.askFetch(op, t, r, off, x, y, old)
	}
	was, err := e.nicAtomic(op, t, r, off, x, y)
	if err == nil {
		old.SetBits(was)
	}
	return Handle{}, err
}

// fetch posts an atomic that the NIC performs. The only one in flight sets out at once, so that it is on its way while the
// program does something else; the next ones go together, as small puts do.
func (n *device) fetch(op atom.Op, r *Remote, off int, x, y uint64, old mem.Range) (Handle, error) {
	name := op.Fetch()
	if err := n.reachWord(name, r, off); err != nil {
		return Handle{}, err
	}
	h, id, only, err := n.BeginFetch(name, r.Rank, old)
	if err != nil {
		return Handle{}, err
	}
	at, _ := n.Lay(id, transport.OpFetchAdd, 0, 8, r.raddr+uint64(off), r.rkey)
	at.Arg0 = x
	if op == atom.CompareSwap {
		at.Kind, at.Arg1 = transport.OpCompareSwap, y
	}
	if only {
		err = n.PostLaid(name, id)
	} else {
		err = n.PostLaidLater(name, id)
	}
	if err != nil {
		n.PartDone(h, nil)
		return Handle{}, err
	}
	n.e.counts.add(PathNICAtomic, r.Rank, 8)
	return h, nil
}

// askFetch has the target's CPU perform an atomic.
func (n *device) askFetch(op atom.Op, t atom.Elem, r *Remote, off int, x, y uint64, old mem.Range) (Handle, error) {
	name := op.Fetch()
	if err := n.reachElements(name, r, off, t.Bytes, t.Bytes); err != nil {
		return Handle{}, err
	}
	h, id, _, err := n.BeginFetch(name, r.Rank, old)
	if err != nil {
		return Handle{}, err
	}
	args, what := errand.ForAtomic(op, t, r.rkey, r.raddr+uint64(off), x, y)
	if err := n.Ask(name, id, uint8(errand.ToAtomic), args, mem.Of(what[:])); err != nil {
		n.PartDone(h, nil)
		return Handle{}, err
	}
	n.e.counts.add(PathMessage, r.Rank, t.Bytes)
	return h, nil
}
