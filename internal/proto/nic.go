package proto

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/am"
	"gopgas/internal/bounce"
	"gopgas/internal/errand"
	"gopgas/internal/hose"
	"gopgas/internal/inflight"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Sizes of the NIC path. A slot is one piece of a large transfer.
const (
	slotBytes    = 64 << 10
	slots        = 32
	pieces       = 256
	scratchBytes = inflight.ScratchBytes // also the largest inline payload
	pollBatch    = 64
)

// nic is a NIC as the engine uses it.
type nic struct {
	e    *Engine
	name string
	d    transport.Domain
	caps transport.Caps

	poll sync.Mutex // held by the poller, try-lock only
	cq   [pollBatch]transport.Completion

	ends []endpoint // by rank

	direct direct // transfers from and to the user's memory
	small  small  // those that are small
	bulk   bulk   // those that are large and not registered
	leases leases // those whose target is not registered either
	gauge  gauge
	forced atomic.Uint32 // a selector.Protocol, or None

	am      *am.AM          // nil: the NIC has no sends
	hoses   *hose.Set       // nil: the NIC has no limit, or cannot do without whole registrations
	bares   atomic.Uint32   // memory attached so far that is not registered
	exposed errand.Memories // what handlers may touch

	pollers    atomic.Int32  // goroutines that poll while they wait
	waits      atomic.Uint32 // that have begun to poll
	unattended atomic.Bool   // attend has ended
	closed     atomic.Bool   // this rank's NIC is closed or has failed: nothing completes any more
	nap        sched.Event
	ctx        context.Context // ends with the NIC's use
	stop       context.CancelFunc
	menders    atomic.Int32 // connections being made anew

	later later // small puts and atomics for which nobody waits yet

	news      atomic.Bool // a rank was lost since spread last ran
	spreading atomic.Bool

	mu     sync.Mutex
	table  inflight.Table // of pieces and transfers; under mu
	pool   *bounce.Pool
	inline int // largest payload sent inline, bytes
}

func newNIC(e *Engine, d transport.Domain) (*nic, error) {
	n := &nic{
		e: e, name: e.config.NICName, d: d, caps: d.Caps(), ends: make([]endpoint, e.Size),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.inline = min(n.caps.MaxInline, scratchBytes)
	if err := n.prepareTable(); err != nil {
		return nil, err
	}
	if err := n.prepareBulk(e.config.Bulk); err != nil {
		return nil, err
	}
	if err := n.prepareLeases(e.config.Leases); err != nil {
		return nil, err
	}
	if n.caps.Sends && n.caps.MaxMessage >= am.LeastMessage {
		var err error
		if n.am, err = am.New(d, e.Rank, e.Size, n.leases.immediates(), messageCookies, n.handle); err != nil {
			return nil, err
		}
	}
	if err := n.prepareMemory(e.config.Registration); err != nil {
		return nil, err
	}
	n.shareRoom()
	n.prepareSmall(e.config.Eager)
	e.Sched.SetProgress(n.progress)
	e.Sched.Go(func() { n.attend(n.ctx) })
	return n, nil
}

// prepareTable registers the buffers of pieces.
func (n *nic) prepareTable() error {
	scratch := mem.Of(make([]uint64, pieces*scratchBytes/8))
	count := n.e.config.Slots
	if count == 0 {
		count = slots
	}
	bufs := mem.Of(make([]uint64, count*slotBytes/8))
	n.pool = bounce.New(bufs, min(slotBytes, n.caps.MaxMessage))
	scratchKey, err := n.d.Register(scratch, transport.LocalWrite)
	if err != nil {
		return fmt.Errorf("register %d bytes of scratch memory: %w", scratch.Bytes, err)
	}
	poolKey, err := n.d.Register(bufs, transport.LocalWrite)
	if err != nil {
		return fmt.Errorf("register %d bytes of bounce buffers: %w", bufs.Bytes, err)
	}
	n.table.Init(inflight.Config{
		Pieces: pieces, Pool: n.pool, PoolKey: poolKey.LKey, Scratch: scratch, ScratchKey: scratchKey.LKey,
	})
	return nil
}

func (n *nic) close() error {
	n.quit()
	err := n.closeDirect()
	if cerr := n.d.Close(); cerr != nil {
		err = cerr
	}
	n.closeBulk()
	n.direct.reg.Forget()
	return err
}

// quit lets nobody poll any more and returns when nobody does: from now on it is no news that the peers' NICs close.
func (n *nic) quit() {
	n.closed.Store(true)
	n.stop()
	n.nap.Set()
	n.d.Wake()
	sp := n.e.Sched.Begin(context.Background(), sched.What{Op: "close", Peer: -1}, nil)
	defer sp.End()
	for !n.unattended.Load() || !n.poll.TryLock() { // a poller may be at work still, and start a mender
		_ = sp.Step() // without a deadline and a watch there is no error but that of a simulated world, whose helpers end
	}
	for n.menders.Load() != 0 {
		_ = sp.Step()
	}
	n.poll.Unlock()
}

// learn keeps rank's address if it was not known before.
func (n *nic) learn(rank int, addr []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends[rank].addr == nil {
		n.ends[rank].addr = addr
	}
}

// progress hands out completions and moves large transfers along if nobody else does so; it reports whether there was
// anything to do.
func (n *nic) progress() bool {
	if n.closed.Load() {
		return false
	}
	n.push()
	if !n.poll.TryLock() {
		return false
	}
	k, err := n.d.Poll(n.cq[:])
	if err != nil {
		n.closed.Store(true)
	}
	for i := range n.cq[:k] {
		n.finish(&n.cq[i])
	}
	n.e.Sched.Served() // messages were handled
	if n.am != nil {
		if n.am.Holds() {
			n.am.Again(n.route)
		}
		_ = n.am.Flush()
	}
	if n.hoses != nil {
		n.hoses.Progress()
	}
	moved := n.advance()
	if n.news.Load() && !n.closed.Load() && !n.spreading.Swap(true) {
		n.menders.Add(1) // while the poller's place is taken: quit looks when it has it
		n.e.Sched.Go(n.spread)
	}
	n.poll.Unlock()
	if n.closed.Load() {
		n.e.Sched.Ring() // quit waits for the lock
	}
	if k > 0 || moved {
		n.e.Sched.Ring() // others of this rank may sleep for one of these
	}
	return (k > 0 || moved) && err == nil
}

// finish handles one completion.
func (n *nic) finish(c *transport.Completion) {
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
	if c.Kind == transport.OpRecv && n.leases.target != nil && n.leases.target.Arrived(c) {
		_ = n.am.Spent(c) // fails only when the NIC is closing
		return
	}
	if n.am != nil && n.am.Owns(c) {
		n.arrived(c)
		return
	}
	id := int32(c.Cookie)
	p := n.table.Piece(id)
	e := &n.ends[p.Rank]
	defer e.leave() // last: then the connection's end has been noted, and what is to be posted again
	if c.Status == transport.StatusFlushed && p.Tries < am.MostTries && n.e.Peers.Check(p.Rank) == nil {
		n.mu.Lock()
		e.redo = append(e.redo, id)
		n.mu.Unlock()
		return
	}
	if c.Status == transport.StatusOK && p.Dst.Bytes != 0 {
		// The destination is the engine's until the transfer's generation grows, below.
		from, _ := n.buffer(id, p.Dst.Bytes)
		copy(p.Dst.Data(), from.Data())
		n.e.Sched.ChargeCopy(p.Dst.Bytes, p.Dst.Bytes)
	}
	var err error
	if c.Status != transport.StatusOK {
		err = n.statusError(p.Rank, c)
	}
	n.landed(id)
	n.settle(id, err)
}

// settle ends a piece.
func (n *nic) settle(id int32, err error) {
	if inner, piped := n.settleOwn(id, err); piped {
		n.reported(inner, err)
	}
}

// settleOwn ends a piece, but for the pipe that it may be of.
func (n *nic) settleOwn(id int32, err error) (inner uint64, piped bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.table.Unhose(id) {
		n.hoses.ReleaseLocked(id)
	}
	p := n.table.Piece(id)
	inner, piped = p.Inner, p.Piped
	rank, tell, loose := n.table.Settle(id, err)
	ep := &n.ends[rank]
	if loose && ep.err == nil {
		ep.err = err
		ep.bad.Store(true)
	}
	if tell {
		ep.bad.Store(true) // P3: nobody may wait for the handle
	}
	ep.pending.Add(-1)
	return inner, piped
}

// partDoneLocked counts one part of a transfer as done.
func (n *nic) partDoneLocked(t int32, err error) {
	if rank, tell := n.table.PartDone(t, err); tell {
		n.ends[rank].bad.Store(true) // P3: nobody may wait for the handle
	}
}

// statusError says what a completion means, in the device's words where it has some.
func (n *nic) statusError(rank int, c *transport.Completion) error {
	var err error
	switch c.Status {
	case transport.StatusPeerGone:
		n.lost(rank)
		err = n.e.Peers.Check(rank)
	case transport.StatusFlushed, transport.StatusInDoubt:
		if err = n.e.Peers.Check(rank); err == nil {
			err = errConnectionLost
		}
	case transport.StatusRemoteAccess:
		err = errRefused
	default:
		err = fmt.Errorf("the NIC reported status %d", c.Status)
	}
	if x, ok := n.d.(transport.Explainer); ok {
		if why := x.Explain(*c); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
	}
	return err
}

var (
	errOwnEnd         = fmt.Errorf("this rank's NIC: %w", transport.ErrClosed)
	errConnectionLost = errors.New("the connection broke before the operation was done; its effect is unknown")
	errRefused        = errors.New("the target's NIC refused the access: the memory was freed, or its key is wrong")
)
