package proto

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
)

// gauge has what transfers cost on this machine and NIC measured, once, by package prices, and lends it the NIC.
type gauge struct {
	begun  atomic.Bool
	prices atomic.Pointer[prices.Prices]

	flying atomic.Int64 // operations that the NIC has
	memory mem.Range    // that they may still use

	mu     sync.Mutex
	done   int // operations reported and not yet taken
	failed error
}

// prices returns what is known of the costs now.
func (n *nic) prices() *prices.Prices {
	if p := n.gauge.prices.Load(); p != nil {
		return p
	}
	n.gauge.prices.CompareAndSwap(nil, prices.Published(n.machine()))
	return n.gauge.prices.Load()
}

// machine is what is known of this NIC without measuring.
func (n *nic) machine() selector.Machine {
	m := selector.Machine{
		Caps: n.caps, Slot: n.pool.SlotBytes(), Slots: n.pool.Bytes() / n.pool.SlotBytes(), BulkSlot: n.bulkSlot(), Fold: bulkFold,
		Idle: n.idleCore(), Lease: n.leases.target != nil,
	}
	if n.am != nil {
		m.Payload = n.am.MaxPayload()
	}
	return m
}

// idleCore reports whether each rank of this node has a core for the helper that registers a hybrid's tail, beside its own and,
// where the NIC is a program, the NIC's. In virtual time each has.
func (n *nic) idleCore() bool {
	idle := n.e.config.Registration.Idle
	busy := 2
	if n.caps.Busy {
		busy++
	}
	ranks, _ := n.e.here()
	return n.e.Sched.Virtual() || idle.Always || busy*ranks <= idle.node().Cores
}

// gaugeMost is the memory at either end that is measured with, and gaugeShare: of what the NIC may pin it takes at most so
// small a part.
const (
	gaugeMost  = 2 << 20
	gaugeShare = 16
)

// gaugeBytes is the memory at either end of what is measured on this NIC.
func (n *nic) gaugeBytes() int {
	if n.caps.MaxPinned <= 0 {
		return gaugeMost
	}
	return int(min(gaugeMost, max(4*4096, n.caps.MaxPinned/gaugeShare/2&^4095)))
}

// measure measures what transfers cost, the first time it is called: between this rank and itself, and by reads of r's memory,
// of which a transfer is about to be made, how much more they cost with a peer; r may be nil. It takes twenty to forty
// milliseconds, beside whatever else the rank does; others go on with what was known before.
func (n *nic) measure(r *Remote) {
	if n.gauge.begun.Swap(true) {
		return
	}
	if n.e.Sched.Virtual() {
		n.small.decide(nil)
		return
	}
	p, err := n.gaugeAll(r)
	if err != nil {
		n.gauge.prices.Store(n.prices().Because(err))
		n.small.decide(nil)
		return
	}
	if n.bulk.origin != nil {
		m := p.Selector.Machine().Model
		n.bulk.origin.Calibrate(&m)
	}
	c, err := n.chooserOf(p)
	if err != nil {
		c, p = nil, p.Because(err)
	}
	n.small.decide(c)
	n.gauge.prices.Store(p)
}

// gaugeAll measures with memory that this rank can reach through its NIC.
func (n *nic) gaugeAll(r *Remote) (*prices.Prices, error) {
	both := mem.Of(make([]uint64, 2*n.gaugeBytes()/8))
	clear(both.Data())
	key, err := n.d.Register(both, transport.LocalWrite|transport.RemoteWrite|transport.RemoteRead)
	if err != nil {
		return nil, fmt.Errorf("register %d bytes to measure transfers with: %w", both.Bytes, err)
	}
	half := both.Bytes / 2
	far := Remote{Rank: n.e.Rank, Bytes: half, raddr: both.Slice(half, half).Addr(), rkey: key.RKey, keyed: true, room: half}
	p, err := prices.Measure(n.ctx, prices.Config{
		Sched: n.e.Sched, NIC: gaugeLane{lane{n}, &far}, Machine: n.machine(), Inline: n.inline, Rank: n.e.Rank,
		Memory: both, Key: key, Peer: n.readable(r),
	})
	if n.gauge.flying.Load() != 0 || n.ends[n.e.Rank].pending.Load() != 0 && n.closed.Load() {
		n.gauge.memory = both // P2: a wait has ended before the operations did
		if err == nil {
			err = errOwnEnd
		}
		return nil, err
	}
	if derr := n.d.Deregister(key); err == nil {
		err = derr
	}
	return p, err
}

// readable is r's memory if a measurement may read it.
func (n *nic) readable(r *Remote) prices.Peer {
	if raceEnabled || r == nil || r.Rank == n.e.Rank || !r.keyed || r.hosed != nil {
		return prices.Peer{}
	}
	return prices.Peer{Rank: r.Rank, Addr: r.raddr, Key: r.rkey, Bytes: r.room}
}

// gaugeLane is the NIC as a measurement sees it. far is the half of its memory that transfers are made with.
type gaugeLane struct {
	lane
	far *Remote
}

// gaugeCookie marks the operations of a measurement.
const gaugeCookie = 1 << 62

// Post implements superpipe.NIC: it marks the operations as a measurement's.
func (l gaugeLane) Post(ops []transport.Op) (int, error) {
	for i := range ops {
		ops[i].Cookie = gaugeCookie
	}
	g := &l.n.gauge
	g.flying.Add(int64(len(ops)))
	k, err := l.lane.Post(ops)
	g.flying.Add(int64(k - len(ops)))
	return k, err
}

// reported notes the end of an operation of the measurement.
func (g *gauge) reported(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying.Add(-1)
	g.done++
	if g.failed == nil {
		g.failed = err
	}
}

// Poll implements prices.NIC, as all that follows.
func (l gaugeLane) Poll(cq []transport.Completion) (int, error) {
	l.n.progress()
	g := &l.n.gauge
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.failed != nil:
		return 0, g.failed
	case l.n.closed.Load():
		return 0, errOwnEnd
	}
	k := min(g.done, len(cq))
	clear(cq[:k])
	g.done -= k
	return k, nil
}

func (l gaugeLane) Flying() bool { return l.n.gauge.flying.Load() != 0 }

func (l gaugeLane) Connect(rank int) error {
	e, err := l.n.enter("measure", rank)
	if err == nil {
		e.leave()
	}
	return err
}

func (l gaugeLane) Alone() (done func()) {
	l.n.pollers.Add(1) // the attending goroutine keeps out of the way
	l.n.waits.Add(1)
	return func() { l.n.pollers.Add(-1) }
}

// journey is a transfer of a measurement.
func (l gaugeLane) journey(get bool, p Path) journey {
	t := journey{name: "measure", kind: transport.OpWrite, r: l.far, path: p}
	if get {
		t.kind = transport.OpRead
	}
	return t
}

func (l gaugeLane) Slotted(get bool, user mem.Range) (err error) {
	n, t := l.n, l.journey(get, PathBounce)
	if get {
		err = n.get(t.r, t.off, user)
	} else {
		err = n.put(t.name, t.r, t.off, user)
	}
	n.e.counts.forget(t.path, t.r.Rank, user.Bytes)
	if get || err != nil {
		return err
	}
	return l.over(t.name)
}

func (l gaugeLane) Piped(get bool, user mem.Range) error {
	t := l.journey(get, PathPipe)
	err := l.n.piped(t, user, selector.Pipe)
	if err != nil {
		return err
	}
	l.n.e.counts.forget(t.path, t.r.Rank, user.Bytes)
	return l.over(t.name)
}

// over waits until all that this rank has sent itself has arrived.
func (l gaugeLane) over(name string) error {
	end := &l.n.ends[l.far.Rank]
	return l.n.waitUntil(name, l.far.Rank, func() bool { return end.pending.Load() == 0 })
}

// Past is a transfer as single makes it, but for a cache of its own, so that nothing is counted as the program's.
func (l gaugeLane) Past(get bool, user mem.Range, cache *regmgr.Manager) error {
	n, t := l.n, l.journey(get, PathBypass)
	if err := n.reach(t.name, t.r, t.off, user.Bytes); err != nil {
		return err
	}
	h, id, err := n.beginOne(t.name, t.r.Rank)
	if err != nil {
		return err
	}
	var hold regmgr.Hold
	if err := cache.Acquire(&hold, regmgr.Request{Mem: user, Access: t.rights()}); err != nil {
		n.abandon(id)
		n.partDone(h.id, nil)
		return err
	}
	defer cache.Release(&hold)
	n.e.counts.add(t.path, t.r.Rank, user.Bytes)
	n.e.counts.forget(t.path, t.r.Rank, user.Bytes)
	op := transport.Op{Kind: t.kind, NSGE: 1, RAddr: t.r.raddr + uint64(t.off), RKey: t.r.rkey}
	op.SGE[0] = transport.SGE{Mem: user, LKey: hold.LKey()}
	if err := n.post(t.name, id, op); err != nil {
		n.partDone(h.id, nil)
		return err
	}
	return h.Wait(context.Background())
}
