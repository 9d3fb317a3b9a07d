package proto

import (
	"context"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
)

// Shows has what goes to members' memory by Store64 and Atomic tell them that all that this rank has put there before has arrived. Where something of that is known to have failed, of
// which nobody was told, they return its error as a flush would; where it fails while they are under way they are not carried out either. It is for
// what programs signal with. The library's own flags follow its own data, and are waited for by members who know nothing of the program's puts.
func Shows(members []Remote) {
	for i := range members {
		members[i].shows = true
	}
}

// FollowFailed ends what Shows has begun.
func FollowFailed(members []Remote) {
	for i := range members {
		members[i].shows = false
	}
}

// before is what Store64, and an Atomic that Shows, does first. For the library's own flags it leaves the errors of what it waits for to who has put that.
func (e *Engine) before(r *Remote) error {
	if !r.shows {
		if e.inOrder(r) {
			return nil
		}
		return e.nic().Land(context.Background(), "flush", r.Rank)
	}
	if err := e.Order(r); err != nil || r.Mapped.Bytes == 0 {
		return err // what goes through the NIC asks when it has its place among what does
	}
	return e.Told(r.Rank)
}

// putAwaited is Put that returns when it is over: what shows it would wait for that next, and not learn whether it has failed.
func (e *Engine) putAwaited(r *Remote, off int, src mem.Range) error {
	h, err := e.PutNB(r, off, src)
	if err != nil {
		return err
	}
	return h.Wait(context.Background())
}

// inOrder reports whether the transport keeps what was put to the member's rank before what is put now.
func (e *Engine) inOrder(r *Remote) bool {
	n := e.nic()
	if r.Mapped.Bytes != 0 || n == nil {
		mem.StoreFence()
		return n == nil || !n.Pending(r.Rank) // else stores would overtake what the NIC has for that rank: accumulates, and puts to memory that is not mapped
	}
	return n.Ordered(r.Rank)
}

// show has an operation that was laid show, if what goes to the member's memory does.
func (n *device) show(r *Remote, op *nic.Laid) error {
	if !r.shows {
		return nil
	}
	return n.Show(op)
}

// settled has nothing be under way to the member's rank that could still fail, behind which a message shows, which would be sent again, or what takes several.
func (n *device) settled(r *Remote) error {
	if !r.shows {
		return nil
	}
	return n.flush(context.Background(), r.Rank)
}

// SignalAdd adds v to the 8-byte word at off atomically, after all earlier puts of this rank to the same rank, and wakes the target if it sleeps. It waits for its end.
func (e *Engine) SignalAdd(r *Remote, off int, v uint64) error {
	err := e.before(r)
	if err == nil && !r.cpuAtomics() && e.nic().wayTo(r, atom.Sum, atom.Word64()) != native {
		err = e.nic().settled(r)
	}
	if err != nil {
		return err
	}
	_, err = e.Atomic(atom.Sum, atom.Word64(), r, off, v, 0)
	e.Peers.Ring(r.Rank)
	return err
}
