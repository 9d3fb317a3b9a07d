package nic

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gopgas/internal/inflight"
	"gopgas/internal/invariants"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// What an operation ends with.
var (
	// ErrOwnEnd: this rank's NIC is closed or has failed.
	ErrOwnEnd = fmt.Errorf("this rank's NIC: %w", transport.ErrClosed)
	// ErrConnectionLost: it was not posted again, as an atomic that may have been done, or has met too many breaks.
	ErrConnectionLost = errors.New("the connection broke before the operation was done; its effect is unknown")
	// ErrRefused: the target's NIC, or its CPU, has not let it have the memory.
	ErrRefused = errors.New("the target's NIC refused the access: the memory was freed, or its key is wrong")
	// ErrBehind: it was to tell the target that all before is there.
	ErrBehind = errors.New("the signal was not sent: what was put before it has failed")
)

// Progress hands out completions and moves along what waits for them if nobody else does so; it reports whether there was
// anything to do. It waits for nothing.
func (n *NIC) Progress() bool {
	if n.HeldBack() > 0 && !n.closed.Load() && n.later.inTime.ripe() {
		n.push()
	}
	return !n.inVain(false)
}

// inVain is Progress but for what is held back, and reports whether there was nothing to do. Who begins to wait does not look where he would
// first have to post what is held back: that may take long, and whoever attends is to know of it.
func (n *NIC) inVain(begins bool) bool {
	if begins {
		if n.HeldBack() > 0 {
			n.later.inTime.hurry()
			return false
		}
		n.begun()
	}
	if n.closed.Load() || !n.poll.take() {
		return true
	}
	cq := n.cq[:]
	if invariants.Sometimes(10) && !n.sched.Virtual() {
		cq = cq[:1] // the others are polled another time
	}
	moved, err := n.Domain.Poll(cq)
	if err != nil {
		n.closed.Store(true)
	}
	for i := range n.cq[:moved] {
		c := &n.cq[i]
		if c.Status != transport.StatusOK || c.Kind >= transport.OpRecv || c.Cookie >= Pieces { // as few are
			n.finish(c)
			continue
		}
		id := int32(c.Cookie)
		p := n.table.Piece(id)
		switch e := n.ends[p.Rank]; {
		case p.Bare():
			n.table.Unnumber(id)
			n.table.GiveBack(p, id) // from here on it may be somebody else's
			e.report()
		case p.Sought():
			n.table.Unnumber(id)
			e.report()
			p.End() // likewise
		case p.Plain():
			n.finishPlain(p, id)
		default:
			n.finish(c)
		}
	}
	n.sched.Served() // what came without a request
	if messages := n.am; messages != nil {
		if messages.Holds() {
			n.again()
		}
		_ = messages.Flush()
	}
	if n.client.Advance() {
		moved++
	}
	if n.news.Load() {
		n.spreadSoon() // while the poller's place is taken: Quit looks for helpers when it has it
	}
	n.poll.leave()
	if moved > 0 || n.closed.Load() { // others of this rank may sleep for one of these, and Quit waits for the place
		n.rouseCrowd()
		if n.sched.Heard() {
			n.sched.Ring()
		}
	}
	return moved == 0
}

// place is the one place at which completions are taken. Nobody waits for it.
type place struct{ taken atomic.Uint32 }

func (p *place) take() bool { return p.taken.Load() == 0 && p.taken.CompareAndSwap(0, 1) }

// leave is an exchange: what the poller has made true is seen before he looks whether somebody sleeps for it.
func (p *place) leave() { p.taken.Store(0) }

// finishPlain is settle of a piece that is Plain, and has ended well.
func (n *NIC) finishPlain(p *inflight.Piece, id int32) {
	e := n.ends[p.Rank]
	n.landed(id)
	n.mu.Lock()
	if _, tell, _ := n.table.Settle(id, nil); tell { // another part of its transfer has failed
		e.bad.Store(true)
	}
	n.endedLocked(e, id)
	e.leaveLocked()
	n.mu.Unlock()
}

// finish handles one completion, whatever it is.
func (n *NIC) finish(c *transport.Completion) {
	switch {
	case c.Kind == transport.OpPeerDown:
		if c.EP.Index < uint32(len(n.ends)) {
			n.lost(int(c.EP.Index))
		}
		return
	case c.Kind == transport.OpPortDown:
		return // what is on the way fails by itself, if it fails
	case c.Status != transport.StatusOK && c.Kind != transport.OpRecv:
		n.broke(c.EP)
	}
	if c.Kind == transport.OpRecv && n.am != nil && n.client.Arrived(c) {
		_ = n.am.Spent(c) // fails only when the NIC is closing
		return
	}
	if n.am != nil && n.am.Owns(c) {
		n.arrived(c)
		return
	}
	id := int32(c.Cookie)
	p := n.table.Piece(id)
	e := n.ends[p.Rank] // it is left last: then the connection's end has been noted, and what is to be posted again
	if c.Status == transport.StatusFlushed && (!tired(p) || !alone(p)) && n.peers.Check(p.Rank) == nil {
		n.mu.Lock()
		e.redo = append(e.redo, id)
		e.leaveLocked()
		n.mu.Unlock()
		return
	}
	if c.Status == transport.StatusOK && p.Dst.Bytes != 0 {
		// The destination is the NIC's until the transfer's generation grows, below.
		from, _ := n.Buffer(id, p.Dst.Bytes)
		mem.Copy(p.Dst.Data(), from.Data())
		n.sched.ChargeCopy(p.Dst.Bytes, p.Dst.Bytes)
	}
	var err error
	if c.Status != transport.StatusOK {
		n.mu.Lock()
		e.spoilLocked(p)
		n.mu.Unlock()
		err = n.statusError(p.Rank, c)
	}
	n.settle(id, e, err)
}

// settle ends a piece. It leaves the endpoint, unless that is nil: then the piece has.
func (n *NIC) settle(id int32, leaves *endpoint, err error) {
	n.landed(id) // before whoever then learns of the end unmaps its memory
	n.mu.Lock()
	inner, piped := n.settleLocked(id, err)
	if leaves != nil && !piped {
		leaves.leaveLocked()
	}
	n.mu.Unlock()
	if !piped {
		return
	}
	n.client.Reported(inner, err)
	if leaves != nil {
		n.leave(leaves)
	}
}

// settleLocked is settle but for what the client is told without the lock.
func (n *NIC) settleLocked(id int32, err error) (inner uint64, piped bool) {
	p := n.table.Piece(id)
	if p.Unmark(inflight.Tied) {
		n.client.LetGoLocked(id)
	}
	n.addedLocked(id)
	inner, piped = p.Inner, p.Has(inflight.Piped)
	if piped {
		n.piped.Add(-1)
	}
	rank, tell, loose := n.table.Settle(id, err)
	e := n.ends[rank]
	if loose {
		e.blameLocked(err)
	}
	if tell {
		e.bad.Store(true) // N2: nobody may wait for the handle
	}
	n.endedLocked(e, id)
	return inner, piped
}

// explainer is implemented by domains that know more about a completion than its Status says.
type explainer interface {
	// Explain returns the device's words for a completion that is not StatusOK, and the likely cause; nil where there
	// is nothing to add. Ask soon: a domain remembers the newest connections of each peer only.
	Explain(c transport.Completion) error
}

// statusError says what a completion means, in the device's words where it has some.
func (n *NIC) statusError(rank int, c *transport.Completion) error {
	var err error
	switch c.Status {
	case transport.StatusPeerGone:
		n.lost(rank)
		err = n.peers.Check(rank)
	case transport.StatusFlushed, transport.StatusInDoubt:
		if err = n.peers.Check(rank); err == nil {
			err = ErrConnectionLost
		}
	case transport.StatusRemoteAccess:
		err = ErrRefused
	default:
		err = fmt.Errorf("the NIC reported status %d", c.Status)
	}
	if x, ok := n.Domain.(explainer); ok {
		if why := x.Explain(*c); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
	}
	return err
}

// Naps of attend while others poll.
const (
	napFirst    = 200 * time.Microsecond
	napLongest  = time.Millisecond
	napWatchful = 20 * time.Microsecond // the first while the client is watchful
)

// attend serves the NIC when nobody of this rank polls: requests of peers, and completions for parked waits. It
// sleeps until the NIC has something; while a wait polls, or one has just polled and the next may follow, it keeps out
// of the way: a NIC that must say when it has something is slower.
func (n *NIC) attend() {
	defer n.unattended.Store(true)
	seen, idle, long := n.uses(), napWatchful, sched.NewNaps()
	var inTime uint64
	for n.ctx.Err() == nil {
		n.asleep.Store(false)
		for nap := napFirst; n.pollers.Load() > 0 || n.uses() != seen; nap = min(2*nap, napDozing) {
			seen = n.uses()
			if more := n.later.inTime.more(&inTime); nap < napLongest || more || !n.doze(nap) {
				n.rest(long, min(nap, napLongest))
			}
			if inTime == n.later.inTime.count.Load() { // what there is has been held for a nap
				n.postInTime()
			}
		}
		n.asleep.Store(true)
		if !n.postInTime() { // somebody is at it, or there is no room
			n.nap.Wait(n.sched, napFirst)
			continue
		}
		if n.client.Watchful() && !n.closed.Load() { // the NIC says nothing of what is waited for
			if n.Progress() {
				idle = napWatchful
			} else {
				n.nap.Wait(n.sched, idle)
				idle = min(2*idle, napLongest)
			}
			continue
		}
		idle = napWatchful
		if err := n.Domain.Wait(n.ctx); err != nil {
			if n.closed.Load() || n.sched.Virtual() { // a simulated rank has been killed
				return
			}
			n.nap.Wait(n.sched, napLongest) // the NIC may work, and only not say when; that it does not the next Poll says
		}
		n.outlast()
		for n.Progress() {
		}
	}
}

// outlast waits until whoever polls now has ended: he may have looked already for what the NIC was woken for. Who begins later finds it.
func (n *NIC) outlast() {
	for !n.poll.take() {
		if n.ctx.Err() != nil {
			return
		}
		n.nap.Wait(n.sched, napWatchful)
	}
	n.poll.leave()
}
