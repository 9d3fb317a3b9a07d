package proto

import (
	"context"

	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// What another rank's NIC has not registered and will not is reached through leases, where that costs less than messages: room flight
// carries them out. Where there is no lease now a part of the transfer goes by message, and then it is tried again.

// Lengths of the parts of a transfer.
const (
	leaseSpan  = 16 << 20  // one lease carries no more, so that others get theirs
	leasesPart = 256 << 10 // what goes another way before a lease is asked for again
)

// unregistered reports whether memory of another rank will not be registered for this one, as far as is known now: the budget has
// no share for it, the two have given up the firehoses between them, or the owner had no room a while ago.
func (n *device) unregistered(r *Remote) bool {
	if r.hosed == nil || r.Rank == n.e.Rank {
		return false
	}
	if r.hosed.Bare() {
		return true
	}
	if w := &n.bulk.wary[r.Rank]; w.Load() > 0 {
		w.Add(-1)
		return true
	}
	return n.hoses.Barred(r.Rank)
}

// refusals is how many large transfers do without firehoses after one was refused for want of room.
const refusals = 8

// chooseUnregistered is choose for memory that the target will not register: messages or a lease.
func (n *device) chooseUnregistered(t *journey, waited bool, user mem.Range) selector.Protocol {
	q := selector.Query{Bytes: user.Bytes, Get: t.kind == transport.OpRead, Waited: waited, Never: true}
	if user.Bytes > flight.Fold*n.flights.SlotBytes() {
		q.Waited = true
	}
	if !n.mayLease(t.r, user) || n.bulk.how.kind == bulkRegister || selector.Select(q, n.prices().Selector) != selector.Lease {
		return selector.Bounce
	}
	return selector.Lease
}

// mayLease reports whether a lease can carry memory: like a pipe it outlives the call.
func (n *device) mayLease(r *Remote, user mem.Range) bool {
	return n.flights.LeasesTo(r.Rank) && n.mayPipe(user)
}

// leased carries a transfer out through leases, one after the other, and what there is no lease for as other transfers. The handle
// is that of the last one.
func (n *device) leased(t journey, user mem.Range) (h Handle, err error) {
	own := mem.Hidden(user)
	for at := 0; at < user.Bytes; {
		if err := h.Wait(context.Background()); err != nil {
			return Handle{}, err
		}
		part := own.Slice(at, min(leaseSpan, user.Bytes-at))
		var granted bool
		h, granted, err = n.lease(t, t.off+at, flight.Cargo{Near: part, Span: part.Bytes})
		if err == nil && !granted {
			part, h = part.Slice(0, min(leasesPart, part.Bytes)), Handle{}
			if n.bulk.how.kind == bulkLeased {
				n.bulk.otherwise[NoLease].Add(1)
			}
			if t.kind == transport.OpRead {
				err = n.get(t.r, t.off+at, part)
			} else {
				err = n.put(t.name, t.r, t.off+at, part)
			}
		} else if granted {
			n.e.counts.add(PathLease, t.r.Rank, part.Bytes)
		}
		if err != nil {
			return Handle{}, err
		}
		at += part.Bytes
	}
	return h, nil
}

// leasedAll is leased for who waits.
func (n *device) leasedAll(t journey, user mem.Range) error {
	h, err := n.leased(t, user)
	if err != nil {
		return err
	}
	return h.Wait(context.Background())
}

// lease carries a cargo between this rank's memory and the target's from off on through a lease: see flight.Flights.Lease.
func (n *device) lease(t journey, off int, c flight.Cargo) (h Handle, granted bool, err error) {
	if err := n.reach(t.name, t.r, off, c.Span); err != nil {
		return h, false, err
	}
	return n.flights.Lease(t.trip(off), c)
}

// trip is the journey as flights see it, with the target's memory from off on.
func (t journey) trip(off int) flight.Trip {
	return flight.Trip{Op: t.name, Get: t.kind == transport.OpRead, Rank: t.r.Rank, Addr: t.r.raddr + uint64(off), Key: t.r.rkey}
}
