package firehose

import "gopgas/internal/invariants"

// recounted is the part of calls, in percent, after which a build that checks invariants counts again what is kept as sums: some, since that
// looks at all buckets. The conditions are asked here and not by Check, whose arguments would be allocated where hits allocate nothing.
const recounted = 5

// recount compares an owner's sums with its buckets. The caller holds the lock.
func (s *Server) recount() {
	if !invariants.Sometimes(recounted) {
		return
	}
	var own, going, idle, remote, held int64
	for i := range s.slab {
		x := &s.slab[i]
		if x.in == nil {
			continue
		}
		w := x.b.Weight()
		if x.local < 0 || x.remote < 0 { // F4
			invariants.Check(false, "%d local and %d remote uses of bucket %v", x.local, x.remote, x.b)
		}
		remote += int64(x.remote) * w
		switch {
		case x.local == 0 && x.remote == 0 && !x.transit: // F3
			own, idle = own+w, idle+w
		case x.local > 0 || x.remote == 0:
			own += w
		}
		if x.leaving {
			going += w
		}
	}
	for r, p := range s.peers {
		if p.held < 0 || p.held > s.b.Share { // F5
			invariants.Check(false, "rank %d holds %d units, its share is %d", r, p.held, s.b.Share)
		}
		held += p.held
	}
	if own != s.own || going != s.going || idle != s.idleW || remote != held {
		invariants.Check(false, "own %d, going %d, idle %d, held %d units; counted again %d, %d, %d, %d", s.own, s.going, s.idleW, held, own, going, idle, remote)
	}
	if s.own-s.going > s.limit { // F2
		invariants.Check(false, "%d units are the owner's, %d of them going, of %d", s.own, s.going, s.limit)
	}
}

// recount compares the sums of what is held of a peer with its firehoses.
func (h *Holder) recount(p *peer) {
	if !invariants.Sometimes(recounted) || p.err != nil {
		return
	}
	var units, idle, back int64
	for i := range p.slab {
		x := &p.slab[i]
		if x.v == nil {
			continue
		}
		if x.ref < 0 {
			invariants.Check(false, "%d uses of firehose %v", x.ref, x.b)
		}
		if x.state != failed {
			units += x.b.Weight()
		}
		if x.state == held && x.ref == 0 { // F6
			idle += x.b.Weight()
		}
	}
	for i := range p.flights {
		if f := &p.flights[i]; f.busy {
			back += max(0, f.oldW-f.newW)
		}
	}
	if p.used != units+back || p.back != back || p.idleW != idle {
		invariants.Check(false, "%d units used, %d to come back, %d idle; counted again %d, %d, %d", p.used, p.back, p.idleW, units+back, back, idle)
	}
	if p.used > h.c.Budget.Share { // F5
		invariants.Check(false, "%d units used of a share of %d", p.used, h.c.Budget.Share)
	}
}
