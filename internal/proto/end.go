package proto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"gopgas/internal/am"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// endpoint is the way to one rank.
//
// A connection that breaks is made again: what was flushed is posted again in its order before anything newer, and what
// was posted again am.MostTries times fails when it is flushed once more. Once would not do: a connection that breaks while
// nothing is in flight is noticed by the next operation, which a break of its own can still meet. For all that the end of a connection must be exact:
// whoever posts first counts itself in posted and then looks at state, and the mender first changes state and then
// waits until posted is 0.
type endpoint struct {
	state  atomic.Uint32
	ep     atomic.Uint64 // the newest incarnation, packed; what is posted goes there in epUp only
	failed atomic.Uint64 // the incarnation that last reported an error, packed
	addr   []byte

	seq     atomic.Uint64 // of the newest operation
	posted  atomic.Int64  // operations that the NIC has or is being given, and has not reported
	pending atomic.Int64  // pieces and pipes in flight
	asked   atomic.Int64  // of these, requests that the target's CPU performs
	piped   atomic.Int64  // large transfers in pipes, not all of which has been posted
	refused atomic.Bool   // the last attempt to connect has failed
	wanted  atomic.Bool   // a message waits for the connection
	redo    []int32       // flushed pieces to post again; under nic.mu
	unequal atomic.Bool   // its slots are not as long or as many as this rank's: no leases
	wary    atomic.Int32  // large transfers that do without firehoses, since one was refused
	bad     atomic.Bool   // err is set
	err     error         // the first asynchronous error not yet reported; under nic.mu
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

// reach returns an error if the n bytes at off of r cannot be operated on: the rank is gone, or they are not its
// exposed memory, which the NICs at both ends would answer by breaking the connection.
func (n *nic) reach(op string, r *Remote, off, bytes int) error {
	if err := n.e.Peers.Check(r.Rank); err != nil {
		return transport.NewOpError(op, r.Rank, err)
	}
	switch {
	case !r.keyed && r.hosed == nil && bytes > 0:
		return transport.NewOpError(op, r.Rank, errNoKey)
	case off < 0 || bytes > r.room-off:
		return transport.NewOpError(op, r.Rank, fmt.Errorf("%w: bytes %d to %d of %d", errBounds, off, off+bytes, r.room))
	}
	return nil
}

// connected is reach for what begins with messages about firehoses: the connection is made, if there is none, so that
// its failure is the operation's.
func (n *nic) connected(op string, r *Remote, off, bytes int) error {
	if err := n.reach(op, r, off, bytes); err != nil {
		return err
	}
	e, err := n.enter(op, r.Rank)
	if err == nil {
		e.leave()
	}
	return err
}

// reachWord is reach for a 64-bit atomic, which must lie on an 8-byte boundary: some NICs never answer otherwise.
func (n *nic) reachWord(op string, r *Remote, off int) error {
	if err := n.reach(op, r, off, 8); err != nil {
		return err
	}
	if (r.raddr+uint64(off))&7 != 0 {
		return transport.NewOpError(op, r.Rank, errAlign)
	}
	return nil
}

var (
	errNoKey  = errors.New("the rank has not registered this memory with its NIC, since it was to be mapped, and here it is not mapped")
	errBounds = errors.New("outside of the exposed memory")
	errAlign  = errors.New("an atomic at an address that is not a multiple of 8")
)

// enter returns rank's endpoint for one operation, which its completion, or leave, ends. It connects on first use, and
// waits while the connection is being made.
func (n *nic) enter(op string, rank int) (*endpoint, error) {
	e := &n.ends[rank]
	for {
		if n.tryEnter(rank) {
			return e, nil
		}
		if e.state.CompareAndSwap(epNone, epConnecting) {
			if err := n.dial(rank, epUp, epNone); err != nil {
				return nil, transport.NewOpError(op, rank, err)
			}
			continue
		}
		err := n.waitUntil(op, rank, func() bool { s := e.state.Load(); return s == epUp || s == epNone })
		if err != nil {
			return nil, err
		}
	}
}

// tryEnter is enter without the waiting.
func (n *nic) tryEnter(rank int) bool {
	e := &n.ends[rank]
	e.posted.Add(1)
	if e.state.Load() == epUp {
		return true
	}
	e.leave()
	return false
}

func (e *endpoint) leave() { e.posted.Add(-1) }

// dial connects with rank and sets its endpoint's state by the outcome. The caller has made it epConnecting or epBroken.
func (n *nic) dial(rank int, good, bad uint32) error {
	e := &n.ends[rank]
	n.mu.Lock()
	addr := e.addr
	n.mu.Unlock()
	c, err := n.d.Connect(n.ctx, rank, addr)
	if err != nil {
		err = n.connectError(rank, err)
		e.refused.Store(true)
		e.state.Store(bad)
		n.e.Sched.Ring()
		return err
	}
	e.refused.Store(false)
	e.ep.Store(pack(c))
	e.state.Store(good)
	n.e.Sched.Ring()
	return nil
}

// connectError says why rank cannot be reached, and spreads the word if it is gone.
func (n *nic) connectError(rank int, err error) error {
	if n.closed.Load() {
		return errOwnEnd
	}
	if errors.Is(err, transport.ErrPeerGone) {
		n.lost(rank)
	}
	if gone := n.e.Peers.Check(rank); gone != nil {
		return gone
	}
	return fmt.Errorf("connect over %s: %w", n.name, err)
}

// broke notes that an operation on ep has ended in an error, which breaks the connection.
func (n *nic) broke(ep transport.EP) {
	e := &n.ends[ep.Index]
	e.failed.Store(pack(ep))
	if e.ep.Load() == pack(ep) && e.state.CompareAndSwap(epUp, epBroken) {
		n.menders.Add(1)
		n.e.Sched.Go(func() { n.mend(int(ep.Index)) })
	}
}

// want has a connection made for a message that waits for one.
func (n *nic) want(rank int) {
	e := &n.ends[rank]
	e.wanted.Store(true)
	if e.state.CompareAndSwap(epNone, epBroken) {
		n.menders.Add(1)
		n.e.Sched.Go(func() { n.mend(rank) })
	}
}

// mendPause is how long a mender leaves the NIC to others when it has nothing to report.
const mendPause = 50 * time.Microsecond

// redialPause is how long a mender waits before it tries what has just failed.
const redialPause = time.Millisecond

// mend takes a broken endpoint over until it works again or is found to be of no use. It polls for itself and never
// spreads news, which would need the endpoint.
func (n *nic) mend(rank int) {
	defer n.menders.Add(-1)
	e := &n.ends[rank]
	for e.posted.Load() != 0 {
		if n.closed.Load() {
			return
		}
		if !n.progress() && n.e.Sched.Sleep(n.ctx, mendPause) != nil {
			return
		}
	}
	n.mu.Lock()
	redo := e.redo
	e.redo = nil
	n.mu.Unlock()
	// What was posted after the break may have been reported before what was flushed by it.
	slices.SortFunc(redo, func(a, b int32) int { return cmp.Compare(n.table.Piece(a).Seq, n.table.Piece(b).Seq) })
	if len(redo) == 0 && !n.holds() && !e.wanted.Load() {
		n.mended(e, epNone) // whoever has something to do connects
		return
	}
	err := n.e.Peers.Check(rank)
	if err == nil && e.refused.Load() {
		err = n.e.Sched.Sleep(n.ctx, redialPause)
	}
	if err == nil {
		e.wanted.Store(false)
		err = n.dial(rank, epBroken, epBroken)
	}
	for _, id := range redo {
		if err == nil {
			err = n.postAgain(e, id)
		}
		if err != nil {
			n.landed(id)
			n.settle(id, err)
		}
	}
	if err != nil {
		n.giveUp(rank, err)
		n.mended(e, epNone)
		return
	}
	n.mended(e, epUp)
	if e.failed.Load() == e.ep.Load() {
		n.broke(e.now()) // it has broken while nobody but the mender used it
	}
}

// mended ends a mender's hold of an endpoint. Messages may wait for that where nobody of this rank polls.
func (n *nic) mended(e *endpoint, state uint32) {
	e.state.Store(state)
	n.e.Sched.Ring()
	n.d.Wake()
}

// postAgain posts a flushed piece on the new connection. It is called by the mender only, in order.
func (n *nic) postAgain(e *endpoint, id int32) error {
	n.table.Piece(id).Tries++
	op := n.table.Op(id)
	op[0].EP = e.now()
	e.posted.Add(1)
	for {
		k, err := n.d.Post(op)
		if k == 1 {
			return nil
		}
		if err == nil && !n.progress() {
			err = n.e.Sched.Sleep(n.ctx, mendPause)
		}
		if err != nil {
			e.leave()
			return err
		}
	}
}

// holds reports whether active messages wait for a connection.
func (n *nic) holds() bool { return n.am != nil && n.am.Holds() }

// route tells active messages how a rank can be reached now, and has a connection made where there is none.
func (n *nic) route(rank int) (transport.EP, am.Route) {
	e := &n.ends[rank]
	switch {
	case e.refused.Load() || n.e.Peers.Check(rank) != nil:
		return transport.EP{}, am.Gone
	case e.state.Load() != epUp:
		n.want(rank)
		return transport.EP{}, am.Waiting
	}
	ep := e.now()
	if e.failed.Load() == pack(ep) {
		return ep, am.Waiting
	}
	return ep, am.Open
}

// waitUntil polls and steps until cond holds or rank is gone. cond must not wait.
func (n *nic) waitUntil(op string, rank int, cond func() bool) error {
	return n.waitWithin(context.Background(), op, rank, cond)
}

// waitWithin is waitUntil that ends with ctx, too.
func (n *nic) waitWithin(ctx context.Context, op string, rank int, cond func() bool) error {
	n.pollers.Add(1)
	defer n.pollers.Add(-1)
	n.waits.Add(1)
	sp := n.e.Sched.Begin(ctx, sched.What{Op: op, Peer: rank}, n.e.Peers.Watch(rank))
	defer sp.End()
	for !cond() {
		if n.progress() {
			sp.Moved()
			continue
		}
		if n.closed.Load() {
			return transport.NewOpError(op, rank, errOwnEnd)
		}
		if err := sp.Step(); err != nil {
			return transport.NewOpError(op, rank, err)
		}
	}
	if sp.Slept() {
		n.e.counts.waited(PathBounce)
	}
	return nil
}

// waitAlone is waitUntil for a wait that concerns no single rank.
func (n *nic) waitAlone(op string, cond func() bool) error {
	n.pollers.Add(1)
	defer n.pollers.Add(-1)
	n.waits.Add(1)
	sp := n.e.Sched.Begin(context.Background(), sched.What{Op: op, Peer: -1}, nil)
	defer sp.End()
	for !cond() {
		if n.progress() {
			sp.Moved()
			continue
		}
		if n.closed.Load() {
			return transport.NewOpError(op, -1, errOwnEnd)
		}
		if err := sp.Step(); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	return nil
}
