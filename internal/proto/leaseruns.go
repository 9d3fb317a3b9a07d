package proto

import (
	"context"

	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/internal/spread"
	"gopgas/transport"
)

// A transfer of many runs to memory that is not registered goes through leases as a long one does: its runs to one member, as many as a
// message can tell the layout of, are gathered into slots at one end and scattered at the other. What is too little for that goes run by
// run.

// lot is runs of a transfer that may go through one lease.
type lot struct {
	near, far spread.Spread
	next      int // the number of the first run that is not in it

	declined *Remote // runs to it do not go through leases
	weighed  int     // runs before this one were looked at
}

// nearMost bounds what is kept of this rank's side of a lot, stripes.
const nearMost = 4096

// lease carries runs to a member from number first on through a lease, as many as one takes, where that is the way for them. It returns the number
// of the first run that is left: first, where none went. What the chain holds is posted before. A put's source is free then, a get's
// destination filled.
func (c *chain) lease(kind transport.Kind, to *Remote, base mem.Range, count, first int, run func(int) Run) (next int, err error) {
	n, l := c.n, &c.lot
	if first < l.weighed || to == l.declined {
		return first, nil
	}
	if !n.leasesRuns(to, base) {
		l.declined = to
		return first, nil
	}
	l.collect(to, mem.Hidden(base), n.Payload-flight.ReplyBytes, count, first, run)
	if !n.leasePays(kind, l.far.Bytes()) {
		l.weighed = max(l.next, first+1)
		return first, nil
	}
	if err := c.Flush(base); err != nil {
		return first, err
	}
	from, upTo := l.near.Bounds()
	lo, hi := l.far.Bounds()
	h, granted, err := n.lease(journey{name: c.name, kind: kind, r: to}, lo, flight.Cargo{
		Near: mem.Hidden(base.Slice(from, upTo-from)), Spread: l.near.Clone(), Span: hi - lo, Layout: l.far.Append(nil, lo),
	})
	if err == nil && granted {
		n.e.counts.add(PathLease, to.Rank, l.far.Bytes())
		return l.next, h.Wait(context.Background())
	}
	l.weighed = part(count, first, run)
	return first, err
}

// part returns the number of the first run behind those that go another way before a lease is asked for again.
func part(count, first int, run func(int) Run) (next int) {
	for bytes := 0; first < count && bytes < leasesPart; first++ {
		bytes += run(first).Bytes
	}
	return first
}

// collect makes a lot of the runs to a member from number first on, as many as one lease carries and a message of so many bytes tells.
func (l *lot) collect(to *Remote, base mem.Range, message, count, first int, run func(int) Run) {
	l.near.Reset(base)
	l.far.Reset(mem.Range{Bytes: to.room}) // only places of it are asked for
	for l.next = first; l.next < count; {
		r, next := whole(count, l.next, run)
		if r.Bytes > 0 && (r.To != to || l.far.Bytes()+r.Bytes > leaseSpan || !l.far.Fits(message) || l.near.Stripes() > nearMost) {
			return
		}
		l.near.Add(r.Near, r.Bytes)
		l.far.Add(r.Far, r.Bytes)
		l.next = next
	}
}

// clear forgets memory.
func (l *lot) clear() {
	l.near.Reset(mem.Range{})
	l.far.Reset(mem.Range{})
	l.declined, l.weighed = nil, 0
}

// leasesRuns reports whether runs to a member's part, out of or into memory of base, go through leases if they are much.
func (n *device) leasesRuns(r *Remote, base mem.Range) bool {
	switch {
	case n.Payload == 0 || r.offered || r.hosed != nil && r.Rank == n.e.Rank:
		return false
	case n.bulk.how.kind == bulkLeased:
		return n.mayLease(r, base)
	case r.hosed == nil || n.bulk.how.kind == bulkRegister || base.Bytes <= n.Payload:
		return false
	default:
		return n.mayLease(r, base) && n.unregistered(r)
	}
}

// leasePays reports whether so many bytes are better carried by a lease than by messages. In messages each run is one at least, so
// this says no rather too often.
func (n *device) leasePays(kind transport.Kind, bytes int) bool {
	if n.bulk.how.kind == bulkLeased {
		return bytes >= n.direct.least
	}
	q := selector.Query{Bytes: bytes, Get: kind == transport.OpRead, Waited: true, Never: true}
	return bytes > n.Payload && selector.Select(q, n.prices().Selector) == selector.Lease
}
