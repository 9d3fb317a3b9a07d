package nic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// WaitUntil polls and steps until cond holds, rank is gone or the NIC is closed. cond must not wait. The rank -1 stands for no single
// one. Its error is a *transport.OpError of op.
func (n *NIC) WaitUntil(op string, rank int, cond func() bool) error {
	return n.WaitWithin(context.Background(), op, rank, cond)
}

// WaitWithin is WaitUntil that ends with ctx, too.
func (n *NIC) WaitWithin(ctx context.Context, op string, rank int, cond func() bool) error {
	var watch sched.Watch
	if rank >= 0 {
		watch = n.peers.Watch(rank)
	}
	what := sched.What{Op: op, Peer: rank}
	sp := n.begin(ctx, what, watch)
	defer n.over(&sp)
	for !cond() {
		if n.Progress() {
			sp.Moved()
			continue
		}
		if n.closed.Load() {
			return transport.NewOpError(what.Op, what.Peer, ErrOwnEnd)
		}
		if err := sp.Step(); err != nil {
			return transport.NewOpError(what.Op, what.Peer, err)
		}
	}
	n.noteSlept(&sp, what)
	return nil
}

// begin begins a wait that polls; over ends it.
func (n *NIC) begin(ctx context.Context, what sched.What, watch sched.Watch) sched.Spin {
	n.pollers.Add(1)
	n.hasten(what.Peer)
	n.later.inTime.hurry()
	n.begun()
	sp := n.sched.Begin(ctx, what, watch)
	sp.Unrung()
	sp.Hushes(n.hushable)
	return sp
}

func (n *NIC) over(sp *sched.Spin) {
	sp.End()
	n.pollers.Add(-1)
}

// noteSlept counts a wait for one rank that has ended well, if it went past its spinning.
func (n *NIC) noteSlept(sp *sched.Spin, what sched.What) {
	if what.Peer >= 0 && sp.Slept() {
		n.slept.Add(1)
	}
}

// Hushable is what waits tell that they poll without a pause, for who polls by Progress and Step; nil: there is nothing to tell.
func (n *NIC) Hushable() sched.Hushable { return n.hushable }

// look polls once for who is about to wait: of what is done by then he need not wait, and not tell others that he does. It reports
// whether that was in vain.
//
//gcassert:inline
func (n *NIC) look() (vain bool) {
	vain = n.inVain(true)
	n.sched.Seen()
	return vain
}

// Alone keeps whoever attends to the NIC out of the way until done is called: the caller polls by Progress.
func (n *NIC) Alone() (done func()) {
	n.pollers.Add(1)
	n.later.inTime.hurry()
	n.begun()
	return func() { n.pollers.Add(-1) }
}

// Slept is how many waits for one rank have ended well that went past their spinning.
func (n *NIC) Slept() uint64 { return n.slept.Load() }

// Flush waits until all is over that was begun to rank before, and returns the first error that nobody was told of. It ends early
// with ctx: what is in flight goes on. Others may begin more meanwhile, for which it does not wait.
func (n *NIC) Flush(ctx context.Context, rank int) error {
	if err := n.Land(ctx, "flush", rank); err != nil {
		return err
	}
	if !n.ends[rank].bad.Load() {
		return nil
	}
	return n.tell(rank)
}

// Land is Flush that leaves such an error for the next one. Its own is a *transport.OpError of op.
func (n *NIC) Land(ctx context.Context, op string, rank int) error {
	e := n.ends[rank]
	mark := e.began.Load()
	if e.pending() == 0 {
		n.hastenOne(e) // which finds nothing, and others may be lazy
		return nil
	}
	if vain := n.lookFirst(); e.pending() != 0 {
		return n.waitFor(ctx, sched.What{Op: op, Peer: rank}, n.peers.Watch(rank), vain, goal{end: e, mark: mark})
	}
	return nil
}

// Told is what Flush would tell of what is over: an error that nobody was told of, once.
func (n *NIC) Told(rank int) error {
	if !n.ends[rank].bad.Load() {
		return nil
	}
	return n.tell(rank)
}

// tell returns the first error to rank that nobody was told of, and stands for the others: no later flush tells of them.
func (n *NIC) tell(rank int) error {
	e := n.ends[rank]
	n.mu.Lock()
	err, untold := e.err, n.table.Untold(rank) // taken in any case: what stayed in the table nobody would ever look for
	if err == nil {
		err = untold
	}
	e.err = nil
	e.bad.Store(false)
	n.mu.Unlock()
	return n.explain("flush", rank, transport.NewOpError("flush", rank, err))
}

// Idle reports whether nothing of this rank is in flight to anybody, or held back, and no failure is left that nobody was told of.
func (n *NIC) Idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for r := range n.ends {
		if e := n.ends[r]; e.pending() != 0 || e.begun.Load() != 0 || e.asked.Load() != 0 || e.err != nil {
			return false
		}
	}
	return n.HeldBack() == 0 && n.table.Fetching() == 0 && !n.table.Failed()
}

// newsTime is how long a broken connection may wait for the news that its rank is gone.
const newsTime = 100 * time.Millisecond

// explain returns err, the error of op to rank, and for a broken connection its cause if that becomes known soon: the NIC
// reports what was in flight before, or instead of, the end of the peer. The cause may be this rank's own end.
func (n *NIC) explain(op string, rank int, err error) error {
	if !errors.Is(err, ErrConnectionLost) {
		return err
	}
	ctx, cancel := n.sched.WithTimeout(context.Background(), newsTime)
	defer cancel()
	sp := n.sched.Begin(ctx, sched.What{Op: op, Peer: rank}, nil)
	defer sp.End()
	for !n.closed.Load() {
		if gone := n.peers.Check(rank); gone != nil {
			return transport.NewOpError(op, rank, fmt.Errorf("%w; %w", gone, ErrConnectionLost))
		}
		if n.Progress() {
			sp.Moved()
			continue
		}
		if sp.Step() != nil {
			break // no news within the time
		}
	}
	if n.closed.Load() { // peers end what they do for a rank as soon as it says that it leaves, before its NIC is closed
		return transport.NewOpError(op, rank, fmt.Errorf("%w; %w", ErrOwnEnd, ErrConnectionLost))
	}
	return err
}
