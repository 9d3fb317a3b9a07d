package proto

import (
	"context"
	"fmt"
	"sync/atomic"

	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// bulk is the part of a NIC's transfers that moves large memory which is not registered: room flight carries them out.
type bulk struct {
	how    Bulk
	chosen atomic.Int32   // transfers that were chosen for, up to enough
	wary   []atomic.Int32 // by rank: large transfers that do without firehoses, since one was refused

	otherwise [obstacles]atomic.Uint64 // transfers that did not travel as is forced
}

// Obstacle is why a transfer did not travel as PGAS_BULK forces it to.
type Obstacle uint8

// The obstacles.
const (
	InBuckets Obstacle = iota // the target's memory is in buckets that are refused, or so few of which are given at once that no pipe pays
	OnStack                   // the caller's memory may lie on a stack, and may be gone before the transfer is over
	Unequal                   // the target's slots are not as long or as many as this rank's
	NoLease                   // a part of it got no lease, from the target or from this rank, and went by message
	obstacles
)

// String names the obstacle as statistics do.
func (o Obstacle) String() string {
	return [...]string{"buckets", "stack", "unequal", "no-lease"}[o]
}

// mayPipeAsForced is mayPipeTo for a transfer that is forced into a pipe: where it cannot go there that is counted.
func (n *device) mayPipeAsForced(t *journey, user mem.Range) bool {
	switch {
	case !n.pipesReach(t, user.Bytes):
		n.bulk.otherwise[InBuckets].Add(1)
	case !n.mayPipe(user):
		n.bulk.otherwise[OnStack].Add(1)
	default:
		return true
	}
	return false
}

// mayLeaseAsForced is mayLease for a transfer that is forced into leases.
func (n *device) mayLeaseAsForced(r *Remote, user mem.Range) bool {
	switch {
	case !n.flights.LeasesTo(r.Rank):
		n.bulk.otherwise[Unequal].Add(1)
	case !n.mayPipe(user):
		n.bulk.otherwise[OnStack].Add(1)
	default:
		return true
	}
	return false
}

// Otherwise returns how many transfers did not travel as PGAS_BULK forces them to, by why.
func (e *Engine) Otherwise() (counts map[Obstacle]uint64) {
	counts = make(map[Obstacle]uint64)
	if n := e.nic(); n != nil {
		for o := range obstacles {
			if c := n.bulk.otherwise[o].Load(); c > 0 {
				counts[o] = c
			}
		}
	}
	return counts
}

// Pipes is what pipes have done that are over, leases' among them, and how targets of leases learn of data.
type Pipes struct {
	Copied, Direct uint64 // bytes that this rank has copied; and that its NIC took from or wrote to where they lie
	Gathered       uint64 // of Direct, those that went through leases
	Unready        uint64 // times that the workspace of leases could not be registered
	Way            superpipe.Way
}

// Pipes returns what pipes have done; ok is false where there are none.
func (e *Engine) Pipes() (p Pipes, ok bool) {
	n := e.nic()
	if n == nil || !n.flights.Pipes() {
		return p, false
	}
	p.Copied, p.Direct, p.Gathered = n.flights.Moved()
	p.Unready, _ = n.flights.Unready()
	p.Way = n.flights.Way()
	return p, true
}

// errForced says why large transfers cannot travel over this NIC as is forced; nil: they can.
func (n *device) errForced(how Bulk, leases int) error {
	switch {
	case how.kind != bulkPiped && how.kind != bulkLeased:
		return nil
	case !n.flights.Pipes():
		return &transport.LimitError{
			What: "workspace for large transfers (PGAS_BULK=" + how.String() + ")", Found: mem.Text(n.Caps.MaxPinned) + " that the NIC may pin",
			Needed: mem.Text(flight.LeastPinned), Setting: "raise PGAS_MAX_PINNED, or leave PGAS_BULK at auto",
		}
	case how.kind == bulkPiped || n.flights.Leases():
		return nil
	case leases < 0:
		return fmt.Errorf("large transfers through leases: PGAS_BULK=lease forces them, PGAS_LEASES=%d forbids them; change one: %w", leases, transport.ErrUnsupported)
	default:
		return fmt.Errorf("large transfers through leases (PGAS_BULK=lease): this NIC neither keeps data in order nor has writes with immediate, or has no messages; "+
			"leave PGAS_BULK at auto: %w", transport.ErrUnsupported)
	}
}

// prepareFlights registers the workspace of large transfers.
func (n *device) prepareFlights(how Bulk, leases int) (err error) {
	n.bulk.how, n.bulk.wary = how, make([]atomic.Int32, n.e.Size)
	n.flights, err = flight.New(flight.Config{
		NIC: n.NIC, Sched: n.e.Sched, Peers: n.e.Peers, Size: n.e.Size, First: askFlight, Policy: how.policy, Leases: leases,
	})
	if err == nil {
		err = n.errForced(how, leases)
	}
	return err
}

// shareRoom has regmgr give up what others do not use.
func (n *device) shareRoom() {
	if n.hoses != nil {
		n.flights.Use(n.direct.reg, n.hoses.Victims())
	} else {
		n.flights.Use(n.direct.reg, nil)
	}
}

// startPipe begins a transfer of memory that is on no stack. The handle is done when a put's source is free, a get's
// destination full.
func (n *device) startPipe(t *journey, user mem.Range, p selector.Protocol) (nic.Handle, error) {
	if t.r.hosed != nil {
		return n.hosedPipe(t, user, p)
	}
	if err := n.connected(t.name, t.r, t.off, user.Bytes); err != nil {
		return nic.Handle{}, err
	}
	head := user.Bytes
	if p == selector.Hybrid {
		head = n.prices().Selector.Head(user.Bytes)
	}
	h, err := n.flights.Begin(t.trip(t.off), mem.Hidden(user), head)
	if err == nil {
		n.e.counts.count(PathPipe, t.r, user.Bytes)
	}
	return h, err
}

// piped carries out a transfer by a pipe; user may be reused, or is filled, when it returns.
func (n *device) piped(t *journey, user mem.Range, p selector.Protocol) error {
	h, err := n.startPipe(t, user, p)
	if err != nil {
		return err
	}
	return h.Wait(context.Background())
}
