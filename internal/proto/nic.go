package proto

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/internal/am"
	"gopgas/internal/bounce"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Sizes of the NIC path. A slot is one piece of a large transfer; a piece has a scratch word for the result
// of an atomic and for the payload of a flag.
const (
	slotBytes    = 64 << 10
	slots        = 32
	pieces       = 256
	scratchBytes = 256 // also the largest inline payload
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

	am       *am.AM // nil: the NIC has no sends
	exposing sync.RWMutex
	exposed  map[uint64]mem.Range // by key: what handlers may touch

	pollers    atomic.Int32 // goroutines that poll while they wait
	unattended atomic.Bool  // attend has ended
	closed     atomic.Bool  // this rank's NIC is closed or has failed: nothing completes any more
	nap        sched.Event
	stop       context.CancelFunc

	news      atomic.Bool // a rank was lost since spread last ran
	spreading atomic.Bool

	mu        sync.Mutex
	pool      *bounce.Pool
	piece     []piece
	freePiece []int32
	transfer  []transfer
	freeTrans []int32
	failed    map[Handle]error // transfers that ended in error and were not waited for yet
	byEP      map[uint32]int   // rank of an endpoint

	poolKey, scratchKey transport.Region
	scratch             mem.Range
	inline              int            // largest payload sent inline, bytes
	ops                 []transport.Op // by piece, so that posting allocates nothing
}

// endpoint is the way to one rank.
type endpoint struct {
	state   atomic.Uint32 // epNone, epConnecting, epUp
	ep      transport.EP  // valid in epUp
	addr    []byte
	pending atomic.Int64 // pieces in flight
	asked   atomic.Int64 // of these, requests that the target's CPU performs
	bad     atomic.Bool  // err is set
	err     error        // the first asynchronous error not yet reported; under nic.mu
}

const (
	epNone = iota
	epConnecting
	epUp
)

// piece is one operation in flight.
type piece struct {
	rank     int
	slot     int32 // of the bounce pool, or -1
	transfer int32 // that it is part of, or -1
	keep     bool  // the waiter takes the result from the piece and frees it
	dst      mem.Range
}

// transfer is what a Handle waits for: one or more pieces.
type transfer struct {
	gen  atomic.Uint32 // grows when the transfer is done
	left int           // pieces not done, plus one while they are being posted
	err  error
	op   string
	rank int
}

func newNIC(e *Engine, d transport.Domain) (*nic, error) {
	n := &nic{
		e: e, name: e.config.NICName, d: d, caps: d.Caps(),
		ends: make([]endpoint, e.Size), piece: make([]piece, pieces), transfer: make([]transfer, pieces),
		failed: make(map[Handle]error), byEP: make(map[uint32]int), ops: make([]transport.Op, pieces),
	}
	n.inline = min(n.caps.MaxInline, scratchBytes)
	for r, a := range e.config.Addresses {
		n.ends[r].addr = a
	}
	for i := pieces - 1; i >= 0; i-- {
		n.freePiece = append(n.freePiece, int32(i))
		n.freeTrans = append(n.freeTrans, int32(i))
	}
	n.scratch = mem.Of(make([]uint64, pieces*scratchBytes/8))
	count := e.config.Slots
	if count == 0 {
		count = slots
	}
	bufs := mem.Of(make([]uint64, count*slotBytes/8))
	n.pool = bounce.New(bufs, min(slotBytes, n.caps.MaxMessage))
	var err error
	if n.scratchKey, err = n.d.Register(n.scratch, transport.LocalWrite); err != nil {
		return nil, fmt.Errorf("register %d bytes of scratch memory: %w", n.scratch.Bytes, err)
	}
	if n.poolKey, err = n.d.Register(bufs, transport.LocalWrite); err != nil {
		return nil, fmt.Errorf("register %d bytes of bounce buffers: %w", bufs.Bytes, err)
	}
	if err := n.prepareDirect(e.config.Registration); err != nil {
		return nil, err
	}
	n.exposed = make(map[uint64]mem.Range)
	if n.caps.Sends && n.caps.MaxMessage >= am.LeastMessage {
		if n.am, err = am.New(d, e.Rank, e.Size, messageCookies, n.handle); err != nil {
			return nil, err
		}
	}
	e.Sched.SetProgress(n.progress)
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	e.Sched.Go(func() { n.attend(ctx) })
	return n, nil
}

func (n *nic) close() error {
	n.quit()
	err := n.closeDirect()
	if cerr := n.d.Close(); cerr != nil {
		err = cerr
	}
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
	for !n.unattended.Load() || !n.poll.TryLock() { // a poller may be at work still
		_ = sp.Step() // without a deadline and a watch there is no error but that of a simulated world, whose helpers end
	}
	n.poll.Unlock()
}

// Naps of attend while others poll.
const (
	napFirst   = 200 * time.Microsecond
	napLongest = time.Millisecond
)

// attend serves the NIC when nobody of this rank polls: requests of peers, and completions for parked waits. It
// sleeps until the NIC has something; while a wait polls it keeps out of the way.
func (n *nic) attend(ctx context.Context) {
	defer n.unattended.Store(true)
	for ctx.Err() == nil {
		for nap := napFirst; n.pollers.Load() > 0; nap = min(2*nap, napLongest) {
			n.nap.Wait(n.e.Sched, nap)
		}
		if err := n.d.Wait(ctx); err != nil {
			return
		}
		n.progress()
	}
}

// know makes memory reachable for handlers; forget ends that, and returns when none is in it.
func (n *nic) know(key uint64, r mem.Range) {
	n.exposing.Lock()
	defer n.exposing.Unlock()
	n.exposed[key] = r
}

func (n *nic) forget(key uint64) {
	n.exposing.Lock()
	defer n.exposing.Unlock()
	delete(n.exposed, key)
}

// learn keeps rank's address if it was not known before.
func (n *nic) learn(rank int, addr []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends[rank].addr == nil {
		n.ends[rank].addr = addr
	}
}

// endpoint returns the connected endpoint of rank; it connects on first use.
func (n *nic) endpoint(rank int, op string) (*endpoint, error) {
	ep := &n.ends[rank]
	for {
		switch ep.state.Load() {
		case epUp:
			return ep, nil
		case epNone:
			if !ep.state.CompareAndSwap(epNone, epConnecting) {
				continue
			}
			c, err := n.d.Connect(context.Background(), rank, ep.addr)
			if err != nil {
				ep.state.Store(epNone)
				return nil, transport.NewOpError(op, rank, n.connectError(rank, err))
			}
			n.mu.Lock()
			ep.ep = c
			n.byEP[c.Index] = rank
			n.mu.Unlock()
			ep.state.Store(epUp)
			return ep, nil
		}
		err := n.waitUntil(op, rank, func() bool { return ep.state.Load() != epConnecting })
		if err != nil {
			return nil, err
		}
	}
}

func (n *nic) connectError(rank int, err error) error {
	if gone := n.e.Peers.Check(rank); gone != nil {
		return gone
	}
	return fmt.Errorf("connect over %s: %w", n.name, err)
}

// waitUntil polls and steps until cond holds or rank is gone. cond must not wait.
func (n *nic) waitUntil(op string, rank int, cond func() bool) error {
	n.pollers.Add(1)
	defer n.pollers.Add(-1)
	sp := n.e.Sched.Begin(context.Background(), sched.What{Op: op, Peer: rank}, n.e.Peers.Watch(rank))
	defer sp.End()
	for !cond() {
		if n.progress() {
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

// progress hands out completions if nobody else does so; it reports whether there were any.
func (n *nic) progress() bool {
	if n.closed.Load() || !n.poll.TryLock() {
		return false
	}
	k, err := n.d.Poll(n.cq[:])
	if err != nil {
		n.closed.Store(true)
	}
	for i := range n.cq[:k] {
		n.finish(&n.cq[i])
	}
	if n.am != nil {
		_ = n.am.Flush()
	}
	n.poll.Unlock()
	if n.closed.Load() {
		n.e.Sched.Ring() // quit waits for the lock
	}
	if n.news.Load() && !n.spreading.Swap(true) {
		n.news.Store(false)
		n.spread()
		n.spreading.Store(false)
	}
	if k > 0 {
		n.e.Sched.Ring() // others of this rank may sleep for one of these
	}
	return k > 0 && err == nil
}

// spread tells every other rank who is gone: only those that were connected to a rank hear of its end from the NIC.
// It runs outside the poller's place, since it posts and may wait.
func (n *nic) spread() {
	p := n.e.Peers
	first := p.block.Load().Word64(blockAny).Load()
	for dead := range n.e.Size {
		c := p.cause(dead)
		if c == 0 {
			continue
		}
		for r := range p.others {
			to := &p.others[r]
			if r == n.e.Rank || to.Mapped.Bytes != 0 || p.cause(r) != 0 {
				continue
			}
			if n.store64("tell", to, blockGone+8*dead, uint64(c)) == nil {
				_ = n.store64("tell", to, blockAny, first) // whoever cannot be told will find out for itself
			}
		}
	}
}

// lost records that rank is gone, and leaves the telling to the next one who polls.
func (n *nic) lost(rank int) {
	if n.e.Peers.MarkGone(rank, Silent) {
		n.news.Store(true)
	}
	if n.am == nil {
		return
	}
	for _, id := range n.am.Lost(rank) {
		n.ends[rank].asked.Add(-1)
		n.settle(int32(id), n.e.Peers.Check(rank))
	}
}

// finish handles one completion.
func (n *nic) finish(c *transport.Completion) {
	if n.am != nil && n.am.Owns(c) {
		n.arrived(c)
		return
	}
	if c.Kind == transport.OpPeerDown || c.Kind == transport.OpPortDown {
		n.mu.Lock()
		rank, known := n.byEP[c.EP.Index]
		n.mu.Unlock()
		if known && c.Kind == transport.OpPeerDown {
			n.lost(rank)
		}
		return
	}
	p := &n.piece[c.Cookie]
	if c.Status == transport.StatusOK && p.dst.Bytes != 0 {
		// The destination is the engine's until the transfer's generation grows, below.
		copy(p.dst.Data(), n.source(p).Data())
		n.e.Sched.ChargeCopy(p.dst.Bytes, p.dst.Bytes)
	}
	var err error
	if c.Status != transport.StatusOK {
		err = n.statusError(p.rank, c.Status)
	}
	n.landed(int32(c.Cookie))
	n.settle(int32(c.Cookie), err)
}

// settle ends a piece.
func (n *nic) settle(id int32, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &n.piece[id]
	ep := &n.ends[p.rank]
	if p.transfer >= 0 {
		n.partDoneLocked(p.transfer, err)
	} else if err != nil && ep.err == nil {
		ep.err = err
		ep.bad.Store(true)
	}
	if !p.keep {
		n.freeLocked(id)
	}
	ep.pending.Add(-1)
}

// freeLocked returns a piece and its slot.
func (n *nic) freeLocked(id int32) {
	p := &n.piece[id]
	if p.slot >= 0 {
		n.pool.Give(p.slot)
	}
	p.dst, p.slot, p.keep = mem.Range{}, -1, false
	n.freePiece = append(n.freePiece, id)
}

// source is the NIC memory of a piece, cut to what it carries.
func (n *nic) source(p *piece) mem.Range { return n.pool.Range(p.slot).Slice(0, p.dst.Bytes) }

// partDoneLocked counts one part of a transfer as done.
func (n *nic) partDoneLocked(t int32, err error) {
	tr := &n.transfer[t]
	if err != nil && tr.err == nil {
		tr.err = err
	}
	tr.left--
	if tr.left > 0 {
		return
	}
	if tr.err != nil {
		n.failed[Handle{n, tr.op, tr.rank, t, tr.gen.Load()}] = transport.NewOpError(tr.op, tr.rank, tr.err)
		if tr.op == opPut {
			n.ends[tr.rank].bad.Store(true) // P3: nobody may wait for the handle
		}
	}
	tr.err = nil
	tr.gen.Add(1)
	n.freeTrans = append(n.freeTrans, t)
}

func (n *nic) statusError(rank int, s transport.Status) error {
	switch s {
	case transport.StatusPeerGone:
		n.lost(rank)
		return n.e.Peers.Check(rank)
	case transport.StatusFlushed, transport.StatusInDoubt:
		if err := n.e.Peers.Check(rank); err != nil {
			return err
		}
		return errConnectionLost
	case transport.StatusRemoteAccess:
		return errRefused
	default:
		return fmt.Errorf("the NIC reported status %d", s)
	}
}

var (
	errOwnEnd         = fmt.Errorf("this rank's NIC: %w", transport.ErrClosed)
	errConnectionLost = errors.New("the connection broke before the operation was done; its effect is unknown")
	errRefused        = errors.New("the target's NIC refused the access: the memory was freed, or its key is wrong")
)
