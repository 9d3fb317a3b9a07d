package firehose

import "github.com/stretchr/testify/require"

// check recounts everything and compares: the invariants F1 to F8 of the package comment. F1 is the Registrar's to check.
func (n *net) check() {
	for rank, o := range n.owners {
		n.checkServer(rank, o)
	}
	for rank, h := range n.holders {
		for peer := range h.peers {
			n.checkHolder(rank, peer, &h.peers[peer])
		}
	}
}

// must is require.True for what is asked a million times.
func (n *net) must(ok bool, format string, args ...any) {
	if !ok {
		n.t.Helper()
		n.t.Fatalf(format, args...)
	}
}

// members returns the places of a chain.
func (n *net) members(c *chain, places int) []bool {
	in := make([]bool, places)
	before := int32(0)
	for i := c.first(); i >= 0; i = c.after(i) {
		n.must(!in[i] && c.links[i].prev == before, "a chain is broken at %d", i)
		in[i], before = true, i+1
	}
	n.must(c.tail == before, "a chain ends at %d", before)
	return in
}

func (n *net) checkServer(rank int, o *owner) {
	s := o.s
	var own, going, idleW int64
	idle := n.members(&s.idle, len(s.slab))
	in := map[*served]int{}
	holds := make([]int64, len(s.peers))
	live, still := 0, 0
	for i := range s.slab {
		x, at := &s.slab[i], int32(i)
		if x.in == nil {
			continue
		}
		live++
		in[x.in]++
		w := x.b.Weight()
		n.must(s.at.find(x.b) == at, "rank %d does not find %v", rank, x.b)
		n.must(x.local >= 0 && x.remote >= 0, "%d local and %d remote uses of %v", x.local, x.remote, x.b) // F4
		sum := x.holder.count
		for _, k := range x.others {
			n.must(k.count > 0, "rank %d holds %v %d times", k.rank, x.b, k.count)
			sum += k.count
		}
		n.must(x.remote == sum, "%d holders of %v, counted %d", sum, x.b, x.remote)
		for r := range holds {
			holds[r] += int64(x.count(r)) * w
		}
		if x.local > 0 || x.remote == 0 {
			own += w
		}
		if x.leaving {
			going += w
		}
		unused := x.local == 0 && x.remote == 0 && !x.transit
		n.must(unused == idle[at], "rank %d: %v is unused: %v, a victim: %v", rank, x.b, unused, idle[at]) // F3
		if unused {
			idleW += w
		}
		if !x.transit {
			still++
			pin, ok := o.pins[x.b]
			n.must(ok && pin == x.pin, "rank %d: %v is not registered", rank, x.b)
		}
	}
	n.must(s.at.n == live, "rank %d: %d of %d buckets are found", rank, s.at.n, live)
	n.must(s.own == own && s.going == going && s.idleW == idleW, "rank %d: own %d, going %d, idle %d; recounted %d, %d, %d",
		rank, s.own, s.going, s.idleW, own, going, idleW)
	n.must(s.own-s.going <= s.limit, "rank %d: own part %d of %d, %d are going", rank, s.own, s.limit, s.going) // F2
	for r := range holds {
		n.must(s.peers[r].held == holds[r], "rank %d: holds %d of %d, recounted %d", r, s.peers[r].held, rank, holds[r])
		n.must(holds[r] <= n.budget.Share, "rank %d holds %d units of %d", r, holds[r], rank) // F5
	}
	for id, k := range s.ranges {
		n.must(k.n == in[k], "rank %d: %d buckets of range %d, recounted %d", rank, k.n, id, in[k])
	}
	n.must(o.units == s.stats.Pinned, "rank %d: %d units are registered, counted %d", rank, o.units, s.stats.Pinned)
	if live == still { // nobody is at the Registrar
		n.must(len(o.pins) == live, "rank %d: %d registrations, %d buckets", rank, len(o.pins), live)
	}
}

func (n *net) checkHolder(rank, peer int, p *peer) {
	s := n.owners[peer].s
	var units, idleW, back int64
	idle := n.members(&p.idle, len(p.slab))
	views := map[*View]int{}
	var hung map[*Request]bool
	live := 0
	for i := range p.slab {
		x, at := &p.slab[i], int32(i)
		if x.v == nil {
			continue
		}
		live++
		views[x.v]++
		w := x.b.Weight()
		n.must(p.at.find(x.b) == at, "rank %d does not find %v", rank, x.b)
		if x.state != failed {
			units += w
		}
		unused := x.state == held && x.ref == 0
		n.must(unused == idle[at], "rank %d: %v of %d is unused: %v, idle: %v", rank, x.b, peer, unused, idle[at]) // F6
		if unused {
			idleW += w
		}
		for q := x.wait; q != nil; q = q.next {
			if hung == nil {
				hung = map[*Request]bool{}
			}
			n.must(!hung[q] && q.state == Waiting && x.state == pending && q.run.At(q.scan) == x.b, "a request for %v hangs on %v", q.run, x.b) // F8
			hung[q] = true
		}
		if x.state == held && p.err == nil && !n.dead[peer] && !n.dead[rank] { // F7
			there := s.at.find(x.b)
			n.must(there >= 0 && s.slab[there].count(rank) > 0, "rank %d believes to hold %v of %d", rank, x.b, peer)
			n.must(n.owners[peer].keys[x.key] == x.b, "rank %d has a wrong key for %v of %d", rank, x.b, peer)
		}
	}
	for i := range p.flights {
		if f := &p.flights[i]; f.busy {
			back += max(0, f.oldW-f.newW)
		}
	}
	n.must(p.at.n == live, "rank %d: %d of %d buckets are found", rank, p.at.n, live)
	n.must(p.idleW == idleW && p.back == back, "rank %d of %d: idle %d, back %d; recounted %d, %d", rank, peer, p.idleW, p.back, idleW, back)
	n.must(p.used <= n.budget.Share, "rank %d uses %d units of %d", rank, p.used, peer)
	n.must(p.err != nil || p.used == units+back, "rank %d uses %d units of %d, recounted %d", rank, p.used, peer, units+back)
	for _, v := range p.views {
		n.must(v.held == views[v], "rank %d: %d firehoses in a view, recounted %d", rank, v.held, views[v])
		delete(views, v)
	}
	n.must(len(views) == 0, "rank %d holds buckets of views that are forgotten", rank)
}

// quiet checks what must hold when nothing is under way: both ends agree exactly, and nobody hangs.
func (n *net) quiet() {
	require.Empty(n.t, n.way)
	for rank, h := range n.holders {
		for peer := range h.peers {
			if n.dead[rank] || n.dead[peer] {
				continue
			}
			p, s := &h.peers[peer], n.owners[peer].s
			count := 0
			for at := range s.slab {
				if x := &s.slab[at]; x.in != nil && x.count(rank) > 0 {
					n.must(x.count(rank) == 1, "rank %d holds %v of %d %d times", rank, x.b, peer, x.count(rank))
					n.must(p.at.find(x.b) >= 0, "rank %d does not know that it holds %v of %d", rank, x.b, peer)
					count++
				}
			}
			n.must(p.at.n == count, "rank %d believes to hold %d buckets of %d, it is %d", rank, p.at.n, peer, count)
			for i := range p.slab {
				n.must(p.slab[i].wait == nil, "somebody hangs on %v", p.slab[i].b)
			}
		}
	}
}
