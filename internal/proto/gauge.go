package proto

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gopgas/eager"
	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// gauge has what transfers cost on this machine and NIC measured, once, by package prices, and lends it the NIC.
type gauge struct {
	begun  atomic.Bool // somebody measures, or has measured
	over   atomic.Bool // nobody measures this rank any more
	peer   atomic.Int32
	prices atomic.Pointer[prices.Prices]
	told   atomic.Pointer[told] // to other ranks last
	kept   atomic.Pointer[kept]

	awaited atomic.Int32 // who waits for what is measured
	flying  atomic.Int64 // operations that the NIC has
	memory  [2]mem.Range // that they may still use

	mu     sync.Mutex
	done   int // operations reported and not yet taken
	failed error
}

// prices returns what is known of the costs now.
func (n *device) prices() *prices.Prices {
	if p := n.gauge.prices.Load(); p != nil {
		return p
	}
	p := prices.Published(n.machine())
	if c, ok := n.costsTold(); ok {
		p = prices.Told(n.machine(), c)
	}
	n.gauge.prices.CompareAndSwap(nil, p)
	return n.gauge.prices.Load()
}

// costsTold is what the machine says that it costs, where it says that: in virtual time.
func (n *device) costsTold() (c transport.Costs, ok bool) {
	if p, ok := n.Domain.(transport.Priced); ok && n.e.Sched.Virtual() {
		c = p.Costs()
		return c, c.Copy != nil && c.PageBytes > 0 && c.Write > 0
	}
	return c, false
}

// machine is what is known of this NIC without measuring.
func (n *device) machine() selector.Machine {
	m := selector.Machine{
		Caps: n.Caps, Slot: n.Slot, Slots: n.Slots, BulkSlot: n.flights.SlotBytes(), Fold: flight.Fold,
		Idle: n.idleCore(), Lease: n.flights.Leases(),
	}
	if n.Payload != 0 {
		m.Payload = n.Payload
	}
	return m
}

// idleCore reports whether each rank of this node has a core for the helper that registers a hybrid's tail, beside its own and,
// where the NIC is a program, the NIC's. In virtual time each has.
func (n *device) idleCore() bool {
	idle := n.e.config.Registration.Idle
	busy := 2
	if n.Caps.Busy {
		busy++
	}
	ranks, _ := n.e.here()
	return n.e.Sched.Virtual() || idle.Always || busy*ranks <= idle.cores()
}

// gaugeMost is the memory at either end that is measured with: so much that what is long finds it in no cache. And gaugeShare: of what the NIC may
// pin it takes at most so small a part.
const (
	gaugeMost  = 8 << 20
	gaugeShare = 16
	gaugeTouch = 50 * time.Millisecond // for taking the memory that is in no cache
)

// gaugeBytes is the memory at either end of what is measured on this NIC.
func (n *device) gaugeBytes() int {
	if n.Caps.MaxPinned <= 0 {
		return gaugeMost
	}
	return int(min(gaugeMost, max(4*4096, n.Caps.MaxPinned/gaugeShare/2&^4095)))
}

// measure has what transfers cost measured, the first time it is called, by the first rank of the node (tell.go) or this one, with itself: beside whatever
// else the rank does, which goes on with what was known before. It takes some tenths of a second, of one rank of the node at a time, and five times as
// long where it rests.
func (n *device) measure() {
	switch {
	case n.gauge.begun.Swap(true):
	case n.e.Sched.Virtual():
		n.decideTold()
	default:
		n.Go(n.measureSelf)
	}
}

// measureNow is measure that returns when the costs are known, or cannot be.
func (n *device) measureNow() error {
	n.measure()
	defer n.hasten()()
	for !n.gauge.over.Load() {
		if err := n.e.Sched.Sleep(n.Context(), turnPause); err != nil {
			return nic.ErrOwnEnd
		}
	}
	return nil
}

// gaugeRest is how much longer than it works who measures rests, where no core is idle and nobody waits for what he measures: until he is done, a fifth of a core is
// his. The program goes by the published costs so long, which costs it less than a core.
const gaugeRest = 4

// rest lets the program have the core for a while.
func (n *device) rest(worked time.Duration) error {
	if n.gauge.awaited.Load() > 0 || n.idleCore() {
		return nil
	}
	return n.e.Sched.Sleep(n.Context(), gaugeRest*worked)
}

// hasten has nobody rest until what it returns is called.
func (n *device) hasten() (done func()) {
	n.gauge.awaited.Add(1)
	return func() { n.gauge.awaited.Add(-1) }
}

// turnPause is how long who waits for his turn to measure, or for a measurement, leaves the cores to others.
const turnPause = time.Millisecond

// measureSelf is measure's goroutine.
func (n *device) measureSelf() {
	if p, err := n.hear(); err == nil {
		n.measured(p, nil)
		return
	}
	for !n.e.takeTurn() {
		if n.e.Sched.Sleep(n.Context(), turnPause) != nil {
			n.measured(nil, nic.ErrOwnEnd)
			return
		}
	}
	defer n.e.leaveTurn()
	cold, err := n.takeCold()
	var p *prices.Prices
	if err == nil {
		p, err = n.gaugeWith(cold, prices.Loan{}, func(c prices.Config) (*prices.Prices, error) { return prices.Measure(n.Context(), c) })
	}
	if err == nil {
		n.keep(p)
	}
	n.measured(p, err)
}

// takeCold takes memory that is in no cache, unless the NIC's use ends before it is there: Go's runtime clears what it has used before in one go, and who closes
// the NIC, or has found this rank dead, does not wait for that. The goroutine that takes it uses nothing of the NIC's.
func (n *device) takeCold() (mem.Range, error) {
	var took atomic.Pointer[mem.Range]
	now := n.e.Sched.Now
	n.e.Sched.Go(func() {
		cold := prices.Touched(now, mem.Of(make([]uint64, prices.ColdMost/8)), gaugeTouch)
		took.Store(&cold)
	})
	for {
		if cold := took.Load(); cold != nil {
			return *cold, nil
		}
		if n.e.Sched.Sleep(n.Context(), turnPause) != nil {
			return mem.Range{}, nic.ErrOwnEnd
		}
	}
}

// measured begins to decide by prices; err says why there are none, both nil that nothing is measured here.
func (n *device) measured(p *prices.Prices, err error) {
	var c *eager.Chooser
	if err == nil && p != nil {
		n.calibrate(p)
		if c, err = n.chooserOf(p); err != nil {
			p = p.Because(err)
		}
		n.gauge.prices.Store(p)
		if p.Abroad {
			n.gauge.peer.Store(peerDone)
		} else {
			n.gauge.peer.Store(peerWanted)
		}
	} else if err != nil {
		n.gauge.prices.Store(n.prices().Because(err))
	}
	n.small.decide(c)
	n.gauge.over.Store(true)
}

// decideTold begins to decide by what the machine has told, if it has.
func (n *device) decideTold() {
	if _, ok := n.costsTold(); !ok {
		n.measured(nil, nil)
		return
	}
	c, err := n.chooserOf(n.prices())
	if err != nil {
		n.measured(nil, err)
		return
	}
	n.small.decide(c)
	n.gauge.over.Store(true)
}

// calibrate has pipes cut by prices.
func (n *device) calibrate(p *prices.Prices) {
	n.flights.Calibrate(p.Selector.Machine().Model)
}

// What is to be done about how much transfers with a peer cost beside those of a rank with itself.
const (
	peerLater     = iota // the rank itself comes first
	peerWanted           // the next large transfer to another rank is an occasion
	peerMeasuring        // somebody does
	peerLate             // he still does, and it is not this rank's turn any more
	peerDone             // it is known, or cannot be
)

// measureToward has transfers with r's rank measured, once, if it is this rank's turn, in memory that r's rank lends. It takes some tens of milliseconds.
func (n *device) measureToward(r *Remote) {
	g := &n.gauge
	if g.peer.Load() != peerWanted || r == nil || r.Rank == n.e.Rank || n.Payload == 0 || !g.peer.CompareAndSwap(peerWanted, peerMeasuring) {
		return
	}
	if !n.e.takeTurn() {
		g.peer.Store(peerWanted) // the next transfer may find better
		return
	}
	n.Go(func() {
		over := n.limitTurn()
		p, err := n.towards(r.Rank)
		over()
		if err == nil { // else the peer is gone, or has no memory to lend: what is known of this rank remains
			n.calibrate(p)
			g.prices.Store(p)
			n.keep(p)
		} else {
			n.calibrate(n.prices())
		}
		g.peer.Store(peerDone)
		n.e.Sched.Ring()
	})
}

// turnMost is how long this rank has the turn at most while it measures with a peer, which takes some tens of milliseconds: a peer that has stopped lends no memory and
// answers nothing, and neither the others of this node nor their question what this rank has measured wait for it.
const turnMost = 2 * time.Second

// limitTurn has the turn end when what it returns is called, or after turnMost.
func (n *device) limitTurn() (over func()) {
	leave := sync.OnceFunc(n.e.leaveTurn)
	ctx, end := context.WithCancel(n.Context())
	n.Go(func() {
		if n.e.Sched.Sleep(ctx, turnMost) == nil {
			n.gauge.peer.CompareAndSwap(peerMeasuring, peerLate)
			leave()
		}
	})
	return func() {
		end()
		leave()
	}
}

// towards measures transfers with a rank.
func (n *device) towards(rank int) (*prices.Prices, error) {
	loan, err := n.borrow(rank)
	if err != nil {
		return nil, err
	}
	p, err := n.gaugeWith(mem.Range{}, loan, func(c prices.Config) (*prices.Prices, error) {
		return n.prices().Toward(n.Context(), c, loan)
	})
	if n.gauge.flying.Load() == 0 && n.Land(n.Context(), "flush", rank) == nil { // else it is the loan's end when this rank is gone: what is under way there may be posted again
		n.giveBack(rank)
	}
	return p, err
}

// gaugeWith calls measure with memory that this rank can reach through its NIC, with some that is in no cache, and with a NIC that moves between the former and
// a loan, or, where there is none, that memory's other half.
func (n *device) gaugeWith(cold mem.Range, loan prices.Loan, measure func(prices.Config) (*prices.Prices, error)) (*prices.Prices, error) {
	n.gauge.reset()
	half := n.gaugeBytes()
	both := mem.MakeFrom(2*half, half) // as memory of a program's own, and as a window's
	clear(both.Data())
	key, err := n.registerBeside(n.Domain, both, transport.LocalWrite|transport.RemoteWrite|transport.RemoteRead)
	if err != nil {
		return nil, fmt.Errorf("register %d bytes to measure transfers with: %w", both.Bytes, err)
	}
	if loan == (prices.Loan{}) {
		loan = prices.Loan{Rank: n.e.Rank, Addr: both.Slice(half, half).Addr(), Key: key.RKey, Bytes: half}
	}
	far := farOf(loan)
	p, err := measure(prices.Config{
		Sched: n.e.Sched, NIC: gaugeLane{nic.Lane{N: n.NIC}, n, &far}, Machine: n.machine(), Inline: n.Inline, Rank: n.e.Rank, Memory: both, Key: key, Cold: cold,
		Hush: n.Hushable(), Rest: n.rest,
	})
	if n.gauge.flying.Load() != 0 || n.Pending(loan.Rank) && n.Closed() {
		n.gauge.memory = [...]mem.Range{both, cold} // N1: a wait has ended before the operations did
		if err == nil {
			err = nic.ErrOwnEnd
		}
		return nil, err
	}
	if derr := n.Domain.Deregister(key); err == nil {
		err = derr
	}
	return p, err
}
