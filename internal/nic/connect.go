package nic

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gopgas/internal/inflight"
	"gopgas/internal/peers"
	"gopgas/transport"
)

// endpoint is the way to one rank.
//
// The end of a connection must be exact, since what was flushed by it goes before anything newer: whoever posts looks at state and counts
// itself in entered, both under the lock, and the mender first changes state and then waits, looking under the lock, until as many have left.
// So he sees everybody who has found the connection up.
//
// Each count has one writer at a time, so it is stored and not added: an exchange takes longer than all the rest. What ends a piece that
// nobody has anything to do with is the poller's alone, who needs no lock to count it in reported: it has left, and ended.
type endpoint struct {
	rank  int
	state atomic.Uint32
	lazy  atomic.Bool   // something in flight may be reported late unless hasten is called
	bad   atomic.Bool   // there is something for a flush to tell: err, or a failure in the table
	ep    atomic.Uint64 // the newest incarnation, packed; what is posted goes there in epUp only

	entered  uint64        // operations that the NIC was given, or is being given; the newest one's Seq; under NIC.mu
	left     uint64        // of these, those that it has reported or has not taken, without those in reported; under NIC.mu
	began    atomic.Uint64 // pieces taken, and what Began has counted; written under NIC.mu
	ended    atomic.Uint64 // of these, those that are over, without those in reported; written under NIC.mu
	reported atomic.Uint64 // operations that have left and pieces that are over, both at once; the poller's
	clear    atomic.Uint64 // all that was begun up to this number is over; written under NIC.mu
	lookedAt atomic.Uint64 // how much was over when that was found; written under NIC.mu
	flights  []uint64      // the numbers of what Began has counted; under NIC.mu

	failed  atomic.Uint64 // the newest incarnation that has reported an error, packed
	addr    []byte        // under NIC.mu
	adding  uint64        // of the pieces in flight, those that Add marks; under NIC.mu
	asked   atomic.Int64  // of these, requests that the target's CPU performs
	begun   atomic.Int64  // of these, what Began has counted
	refused atomic.Bool   // the last attempt to connect has failed
	wanted  atomic.Bool   // a message waits for the connection
	soon    atomic.Bool   // it will be wanted soon
	redo    []int32       // flushed pieces to post again; under NIC.mu
	spoiled uint64        // the Seq of the first that has failed for good on the connection that breaks; 0: none; under NIC.mu
	err     error         // the first asynchronous error not yet reported; under NIC.mu
	why     error         // why the last attempt to connect has failed; under NIC.mu
}

// States of an endpoint.
const (
	epNone       = iota // the next operation connects
	epConnecting        // somebody does
	epUp
	epBroken // a mender is at work
)

func pack(ep transport.EP) uint64 { return uint64(ep.Index)<<32 | uint64(ep.Incarnation) }

// now returns the newest incarnation.
func (e *endpoint) now() transport.EP {
	p := e.ep.Load()
	return transport.EP{Index: uint32(p >> 32), Incarnation: uint32(p)}
}

// Learn keeps rank's address if it was not known before.
func (n *NIC) Learn(rank int, addr []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends[rank].addr == nil {
		n.ends[rank].addr = addr
	}
}

// address returns rank's address, nil: it is not known.
func (n *NIC) address(rank int) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ends[rank].addr
}

// Connect makes the connection with rank if there is none; it waits while that is being made or mended. Its error is a
// *transport.OpError of op.
func (n *NIC) Connect(op string, rank int) error {
	e, _, err := n.enter(op, rank)
	if err == nil {
		n.leave(e)
	}
	return err
}

// enter returns rank's endpoint for one operation, which its completion, or leave, ends, and the operation's number among those to
// that rank. It connects on first use, and waits while the connection is being made.
func (n *NIC) enter(op string, rank int) (e *endpoint, seq uint64, err error) {
	e = n.ends[rank]
	for {
		if seq, ok := n.tryEnter(e); ok {
			return e, seq, nil
		}
		if e.state.CompareAndSwap(epNone, epConnecting) {
			if err := n.dial(rank, epUp, epNone); err != nil {
				return nil, 0, transport.NewOpError(op, rank, err)
			}
			continue
		}
		err := n.WaitUntil(op, rank, func() bool { s := e.state.Load(); return s == epUp || s == epNone })
		if err != nil {
			return nil, 0, err
		}
	}
}

// tryEnter is enter without the waiting.
func (n *NIC) tryEnter(e *endpoint) (seq uint64, ok bool) {
	n.mu.Lock()
	seq, ok = e.tryEnterLocked()
	n.mu.Unlock()
	return seq, ok
}

func (e *endpoint) tryEnterLocked() (seq uint64, ok bool) {
	if e.state.Load() != epUp {
		return 0, false
	}
	e.entered++
	return e.entered, true
}

// leave ends what enter has begun, for what the NIC has not taken.
func (n *NIC) leave(e *endpoint) {
	n.mu.Lock()
	e.leaveLocked()
	n.mu.Unlock()
}

func (e *endpoint) leaveLocked() { e.left++ }

// empty reports whether all that has entered rank's endpoint has left.
func (n *NIC) empty(e *endpoint) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return e.entered == e.left+e.reported.Load()
}

// dial connects with rank and sets its endpoint's state by the outcome. The caller has made it epConnecting or epBroken.
func (n *NIC) dial(rank int, good, bad uint32) error {
	e := n.ends[rank]
	c, err := n.Domain.Connect(n.ctx, rank, n.address(rank))
	if err != nil {
		err = n.connectError(rank, err)
		n.refuse(e, err)
		e.state.Store(bad)
		n.sched.Ring()
		return err
	}
	n.refuse(e, nil)
	e.ep.Store(pack(c))
	e.state.Store(good)
	n.sched.Ring()
	return nil
}

// refuse notes how an attempt to connect has ended.
func (n *NIC) refuse(e *endpoint, why error) {
	n.mu.Lock()
	e.why = why
	n.mu.Unlock()
	e.refused.Store(why != nil) // after the reason: what it stops tells that
}

// connectError says why rank cannot be reached, and spreads the word if it is gone.
func (n *NIC) connectError(rank int, err error) error {
	if n.closed.Load() {
		return ErrOwnEnd
	}
	if errors.Is(err, transport.ErrPeerGone) {
		n.lost(rank)
		n.Domain.Wake() // who has dialled need not poll again, and whoever attends may sleep: the word would stay with this rank
	}
	if gone := n.peers.Check(rank); gone != nil {
		if n.peers.Cause(rank) == peers.Silent {
			return fmt.Errorf("%w: connect over %s: %w", gone, n.Name, err) // what the NIC has seen is all that is known
		}
		return gone
	}
	return fmt.Errorf("connect over %s: %w", n.Name, err)
}

// want has a connection made for what waits for one without a goroutine of its own.
func (n *NIC) want(rank int) {
	e := n.ends[rank]
	e.wanted.Store(true)
	if e.state.CompareAndSwap(epNone, epBroken) {
		n.Go(func() { n.mend(rank) })
	}
}

// wantPause is how long who is owed a reply is left alone when there was no way to him.
const wantPause = 50 * time.Millisecond

// wantSoon is want after a pause, for a rank that could not be reached.
func (n *NIC) wantSoon(rank int) {
	e := n.ends[rank]
	if e.soon.Swap(true) {
		return
	}
	n.Go(func() {
		err := n.sched.Sleep(n.ctx, wantPause)
		e.soon.Store(false)
		if err == nil {
			n.want(rank)
		}
	})
}

// Connected reports whether the connection with rank works, as far as this rank knows: what is posted now need not wait for it.
func (n *NIC) Connected(rank int) bool { return n.ends[rank].state.Load() == epUp }

// Asked reports whether rank's CPU was asked for something by this rank that it has not answered.
func (n *NIC) Asked(rank int) bool { return n.ends[rank].asked.Load() != 0 }

// Ordered reports whether what is posted to rank now arrives after all that went before, and sees to it that what is held back from now on does.
func (n *NIC) Ordered(rank int) bool {
	n.later.order()
	return n.InOrder(rank)
}

// InOrder is Ordered that only asks.
func (n *NIC) InOrder(rank int) bool {
	e := n.ends[rank]
	return n.Caps.OrderedWrites && e.asked.Load() == 0 && e.begun.Load() == 0
}

// Add marks piece id, which is the caller's, as an atomic for whose result nobody waits.
func (n *NIC) Add(id int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.table.Piece(id)
	p.Mark(inflight.Adds)
	n.ends[p.Rank].adding++
}

// addedLocked ends what Add has begun, for a piece that ends; any other it leaves alone.
func (n *NIC) addedLocked(id int32) {
	if p := n.table.Piece(id); p.Unmark(inflight.Adds) {
		n.ends[p.Rank].adding--
	}
}

// OnlyAdds reports whether nothing of this rank is in flight to rank but what Add has marked, and the NIC keeps it before what is posted
// now: which then needs no flush between, since what is an atomic is never posted again behind it (N4).
func (n *NIC) OnlyAdds(rank int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.ends[rank]
	return n.Caps.OrderedWrites && e.pending() == e.adding
}

// blameLocked keeps an error that is nobody's for the next flush, if it is the first.
func (e *endpoint) blameLocked(err error) {
	if e.err == nil {
		e.err = err
		e.bad.Store(true)
	}
}
