package proto

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/eager"
	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// gauge measures what transfers cost on this machine and NIC, once.
type gauge struct {
	begun  atomic.Bool
	prices atomic.Pointer[prices]

	flying atomic.Int64 // operations that the NIC has
	memory mem.Range    // that they may still use

	mu     sync.Mutex
	done   int // operations reported and not yet taken
	failed error
}

// prices are what choices are made by.
type prices struct {
	selector *selector.Selector
	learned  *selector.Learned
	small    [2]eager.Costs // of puts, of gets
	measured bool
	why      error // nothing was measured
}

// Costs in seconds that are not measured.
const (
	assumedHandler = 2e-6 // of an active message at its target
	assumedLookup  = 60e-9
	nanosecond     = 1e-9
)

// published are the constants of A. Denis, Euro-Par 2011, or derived from them: for as long as nothing has been measured, and in
// virtual time, where the machine is no more than its constants. Gap and copies in the caches are assumed.
func published() superpipe.Model {
	return superpipe.Model{
		Gap: 0.2e-6, Latency: 1.2e-6, Net: 2e9, RegLatency: 68e-6, Reg: 4096 / 200e-9,
		Copy: func(bytes float64) float64 {
			if bytes <= 32<<10 {
				return 8e9
			}
			return 5.2e9
		},
	}
}

// prices returns what is known of the costs now.
func (n *nic) prices() *prices {
	if p := n.gauge.prices.Load(); p != nil {
		return p
	}
	n.gauge.prices.CompareAndSwap(nil, &prices{selector: n.selectorOf(published(), assumedLookup), learned: new(selector.Learned)})
	return n.gauge.prices.Load()
}

func (n *nic) selectorOf(m superpipe.Model, lookup float64) *selector.Selector {
	return n.machine(m, lookup).Selector(0)
}

// machine is this NIC with a model of costs.
func (n *nic) machine(m superpipe.Model, lookup float64) selector.Machine {
	machine := selector.Machine{
		Caps: n.caps, Model: m, Post: m.Gap, Lookup: lookup, Handler: assumedHandler,
		Slot: n.pool.SlotBytes(), Slots: n.pool.Bytes() / n.pool.SlotBytes(), BulkSlot: n.bulkSlot(), Fold: bulkFold,
		Idle: n.idleCore(),
	}
	machine.Lease = n.leases.target != nil
	if n.am != nil {
		machine.Payload = n.am.MaxPayload()
	}
	return machine
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
	gaugeCold  = 4 // so small a part of it the longest transfer is, so that others find it in no cache
)

// gaugeBytes is the memory at either end of what is measured on this NIC.
func (n *nic) gaugeBytes() int {
	if n.caps.MaxPinned <= 0 {
		return gaugeMost
	}
	return int(min(gaugeMost, max(4*4096, n.caps.MaxPinned/gaugeShare/2&^4095)))
}

// gaugeCookie marks the operations of a measurement.
const gaugeCookie = 1 << 62

// measure measures what transfers cost, the first time it is called: between this rank and itself, and by reads of r's memory,
// of which a transfer is about to be made, how much more they cost with a peer; r may be nil. It takes twenty to forty
// milliseconds, beside whatever else the rank does; others go on with what was known before.
func (n *nic) measure(r *Remote) {
	if n.gauge.begun.Swap(true) {
		return
	}
	if n.e.Sched.Virtual() {
		n.small.choose(nil)
		return
	}
	machine, costs, gets, err := n.gaugeAll(r)
	if err != nil {
		n.prices()
		old := *n.gauge.prices.Load()
		old.why = err
		n.gauge.prices.Store(&old)
		n.small.choose(nil)
		return
	}
	if n.bulk.origin != nil {
		n.bulk.origin.Calibrate(&machine.Model)
	}
	c, err := eager.New(eager.Config{
		Limits: eager.Limits{Inline: n.inline, Slot: n.pool.SlotBytes()}, Costs: costs, Gets: gets, Percent: n.small.how.Percent,
	})
	if err != nil {
		c = nil
	}
	n.small.choose(c)
	n.gauge.prices.Store(&prices{
		selector: machine.Selector(0), learned: new(selector.Learned), small: [2]eager.Costs{costs, gets}, measured: true, why: err,
	})
}

// gaugeAll measures the costs of large transfers and of small ones.
func (n *nic) gaugeAll(r *Remote) (machine selector.Machine, costs, gets eager.Costs, err error) {
	var none selector.Machine
	both := mem.Of(make([]uint64, 2*n.gaugeBytes()/8))
	clear(both.Data())
	reg, err := n.d.Register(both, transport.LocalWrite|transport.RemoteWrite|transport.RemoteRead)
	if err != nil {
		return none, nil, nil, fmt.Errorf("register %d bytes to measure transfers with: %w", both.Bytes, err)
	}
	m, peer, err := n.gaugeModel(both, reg, r)
	var small bySlot
	if err == nil {
		costs, gets, small, err = n.gaugeSmall(m, both, reg)
	}
	if err == nil {
		machine = n.machine(*m, costs.At(n.pool.SlotBytes()).Lookup*nanosecond)
		err = n.tune(&machine, small, both, reg)
		machine.Model = *peer
	}
	if n.gauge.flying.Load() != 0 || n.ends[n.e.Rank].pending.Load() != 0 && n.closed.Load() {
		n.gauge.memory = both // P2: a wait has ended before the operations did
		return none, nil, nil, err
	}
	if derr := n.d.Deregister(reg); err == nil {
		err = derr
	}
	return machine, costs, gets, err
}

// gaugeModel measures between both halves of memory that this rank can reach through its NIC, and with r.
func (n *nic) gaugeModel(both mem.Range, reg transport.Region, r *Remote) (own, peer *superpipe.Model, err error) {
	if _, err := n.enter("measure", n.e.Rank); err != nil {
		return nil, nil, err
	}
	n.ends[n.e.Rank].leave()
	n.pollers.Add(1) // the attending goroutine keeps out of the way
	defer n.pollers.Add(-1)
	n.waits.Add(1)
	half := both.Bytes / 2
	far := both.Slice(half, half)
	b := superpipe.Bench{
		Sched: n.e.Sched, NIC: gaugeLane{lane{n}}, Poll: n.pollGauge, EP: transport.EP{Index: uint32(n.e.Rank)},
		Local: transport.SGE{Mem: both.Slice(0, half), LKey: reg.LKey}, RAddr: far.Addr(), RKey: reg.RKey, Longest: half / gaugeCold,
	}
	own, err = superpipe.Measure(n.ctx, b)
	if err != nil || !n.readable(r) {
		return own, own, err
	}
	b.EP.Index, b.RAddr, b.RKey, b.Longest = uint32(r.Rank), r.raddr, r.rkey, min(half, r.room)
	m := *own
	if err := m.Toward(n.ctx, b); err != nil && n.gauge.flying.Load() != 0 {
		return nil, nil, err // else the peer is gone, or its window is small: what is known of this rank remains
	}
	return own, &m, nil
}

// readable reports whether a measurement may read r's memory.
func (n *nic) readable(r *Remote) bool {
	if raceEnabled || r == nil || r.Rank == n.e.Rank || !r.keyed || r.hosed != nil {
		return false
	}
	_, err := n.enter("measure", r.Rank)
	if err == nil {
		n.ends[r.Rank].leave()
	}
	return err == nil
}

// gaugeLane is the NIC as a measurement sees it.
type gaugeLane struct{ lane }

// Post marks the operations as a measurement's.
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

// pollGauge takes the completions of the measurement.
func (n *nic) pollGauge(cq []transport.Completion) (int, error) {
	n.progress()
	g := &n.gauge
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.failed != nil:
		return 0, g.failed
	case n.closed.Load():
		return 0, errOwnEnd
	}
	k := min(g.done, len(cq))
	clear(cq[:k])
	g.done -= k
	return k, nil
}
