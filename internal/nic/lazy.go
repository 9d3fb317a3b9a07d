package nic

import "gopgas/transport"

// A flag in a peer's memory is mostly answered by a flag of the peer's, and nobody waits for the end of the operation that sets it. Where a NIC spares an
// answer by telling of that end late, with the next thing that the peer says, a flag is lazy. That must hold up nobody: as long as somebody of this rank waits for
// anything of the NIC no operation is lazy, and who begins to wait for a rank has those to it hastened. Who posts a lazy one notes that and then looks for
// who waits; who waits counts himself and then looks for what was noted. So one of them sees the other.

// hastener is implemented by domains that tell of the end of what is lazy late.
type hastener interface {
	// Hasten has the end told of all that is in flight to a peer. It does not wait.
	Hasten(ep transport.EP)
}

// Hastens reports whether the NIC is such.
func (n *NIC) Hastens() bool { return n.hastener != nil }

// Half of the pieces are kept for what is not lazy.
const (
	lazyEach  = 8 // to one rank, or a few more
	lazyRanks = Pieces / 2 / lazyEach
)

// Lazy is transport.FlagLazy if the operation that goes to rank next may be lazy, else 0.
func (n *NIC) Lazy(rank int) uint8 {
	if n.hastener == nil || n.pollers.Load() > 0 {
		return 0
	}
	if e := n.ends[rank]; e.pending() >= lazyEach || !e.lazy.Load() && n.lazy.Load() >= lazyRanks {
		return 0
	}
	return transport.FlagLazy
}

// SendLazy is Send for an operation that was laid with what Lazy has said. What is held back crosses into the NIC together with it.
func (n *NIC) SendLazy(name string, op *Laid) error {
	rank, lazy := int(op[0].EP.Index), op[0].Flags&transport.FlagLazy != 0 // from Send on it may be somebody else's
	if n.addBehind(op) {
		if !n.push() {
			return n.WaitUntil(name, rank, n.push)
		}
		return nil
	}
	err := n.Send(name, op)
	if lazy {
		n.noteLazy(rank)
	}
	return err
}

// noteLazy notes that something lazy was posted to a rank.
func (n *NIC) noteLazy(rank int) {
	if e := n.ends[rank]; !e.lazy.Load() && e.lazy.CompareAndSwap(false, true) {
		n.lazy.Add(1)
	}
	if n.pollers.Load() > 0 {
		n.hasten(rank)
	}
}

// noteAll is noteLazy for some operations that were held back, of which some may be lazy.
func (n *NIC) noteAll(posted []transport.Op) {
	for i := range posted {
		if posted[i].Flags&transport.FlagLazy != 0 {
			n.noteLazy(int(posted[i].EP.Index))
		}
	}
}

// hasten has the NIC tell of the end of all that is lazy to a rank, or to all where there is none.
func (n *NIC) hasten(rank int) {
	switch {
	case n.lazy.Load() == 0:
	case rank >= 0:
		n.hastenOne(n.ends[rank])
	default:
		for _, e := range n.ends {
			n.hastenOne(e)
		}
	}
}

func (n *NIC) hastenOne(e *endpoint) {
	if e.lazy.Load() && e.lazy.CompareAndSwap(true, false) {
		n.lazy.Add(-1)
		n.hastener.Hasten(e.now())
	}
}
