package nic

import (
	"context"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// What a crowd does with the NIC.

// waitFor waits for an end that a poller brings about, as WaitWithin: others of this rank may look for that. Who waits may have looked in vain already.
func (n *NIC) waitFor(ctx context.Context, what sched.What, watch sched.Watch, looked bool, g goal) error {
	sp := n.begin(ctx, what, watch)
	defer n.over(&sp)
	w := n.crowd.join()
	defer n.leaveCrowd(&w)
	looked = looked || n.crowd.many()
	for ; !n.reached(&g); looked = false {
		var err error
		switch {
		case n.closed.Load():
			err = ErrOwnEnd
		case n.crowd.sits(&w, &g):
			if !n.reached(&g) { // it was not before he sat down
				err = n.sit(&sp, &w.seat.Seat)
			}
		case !looked && n.Progress():
			sp.Moved()
			n.crowd.moved(&w)
		default:
			n.stepInCrowd(&w, &sp)
			err = sp.Step()
		}
		if err != nil {
			return transport.NewOpError(what.Op, what.Peer, err)
		}
	}
	n.noteSlept(&sp, what)
	return nil
}

// sit is Spin.Sit, and looks once who has not been roused: who looks for him may not have a processor.
func (n *NIC) sit(sp *sched.Spin, s *sched.Seat) error {
	roused, err := sp.Sit(s)
	if !roused && err == nil {
		n.Progress()
	}
	return err
}

// reached reports whether what a wait waits for has come about, for good.
func (n *NIC) reached(g *goal) bool {
	switch {
	case g.piece != nil:
		return g.piece.Over()
	case g.end != nil:
		return n.past(g.end, g.mark)
	}
	return n.table.Over(g.transfer, g.gen)
}

// lookFirst is look, where no others do.
func (n *NIC) lookFirst() (vain bool) { return n.crowd.many() || n.look() }

// stepInCrowd is what a guest who looks does before his next step: he leaves the processor to who was roused, or has more to post.
func (n *NIC) stepInCrowd(w *guest, sp *sched.Spin) {
	c := &n.crowd
	if w.rose {
		w.rose = false
		sp.Resume()
	}
	if w.steps++; w.steps == tiring {
		w.tired = true
		c.tired.Add(1)
		c.relieve()
		n.pushHeld()
	}
	if int(c.waits.Load()) > c.look {
		sched.GiveTurn()
	}
}

// rouseCrowd rouses those who sit for what has come about.
func (n *NIC) rouseCrowd() {
	c := &n.crowd
	if c.sat.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 0; i < len(c.taken); {
		if s := c.taken[i]; n.reached(&s.goal) {
			c.getUp(i)
			s.Rouse()
		} else {
			i++
		}
	}
}

// leaveCrowd is leave, and posts what was left to who has left.
func (n *NIC) leaveCrowd(w *guest) {
	n.crowd.leave(w)
	n.pushHeld()
}

// leaveToCrowd leaves an operation to the next look of who looks.
func (n *NIC) leaveToCrowd(name string, op *Laid) error {
	if err := n.SendLater(name, op); err != nil {
		return err
	}
	n.pushHeld() // nobody may look any more
	return nil
}

// pushHeld posts what was left to who looks, unless somebody does. Who leaves something asks afterwards whether anybody looks, and who looks no longer whether
// something was left: one of them sees the other.
func (n *NIC) pushHeld() {
	c := &n.crowd
	if n.hushable == nil || c.lookers() > 0 || n.HeldBack() == 0 || n.push() {
		return
	}
	_ = n.WaitUntil("post", -1, func() bool { return c.lookers() > 0 || n.HeldBack() == 0 || n.push() }) // an error: the NIC is closed
}
