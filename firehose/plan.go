package firehose

// A flight is a move of this rank that has no answer yet.
type flight struct {
	gen   uint32 // part of the ID, so that a late answer is not taken for another's
	busy  bool
	new   []Run
	old   []Run
	newW  int64
	oldW  int64
	carry *Request // whose Put goes along
}

// A move charges the share with what it adds at once, and gives back what it frees only when it is answered: so
// whichever of the moves under way have arrived, in whatever order, the peer holds no more than its share (F5).

// charge accounts for a flight that sets out.
func (p *peer) charge(f *flight) {
	p.used += max(0, f.newW-f.oldW)
	p.back += max(0, f.oldW-f.newW)
}

// settle accounts for the answer of a flight: Old was given up, New granted or not.
func (p *peer) settle(f *flight, granted bool) {
	p.back -= max(0, f.oldW-f.newW)
	p.used -= max(0, f.oldW-f.newW)
	if !granted {
		p.used -= f.newW
	}
}

// attempt takes the buckets of q and plans the move for those that are missing. It returns false, with nothing taken, if
// firehoses that are in use must come free first.
func (h *Holder) attempt(q *Request) bool {
	v := q.v
	p, w := v.p, q.run.First.Weight()
	var missing, waiting, runs int
	var ownIdle int64
	for i, gap := uint32(0), true; i < q.run.Count; i++ {
		k := p.at.find(q.run.At(i))
		switch {
		case k < 0:
			missing++
			runs += int(b2u(gap))
		case p.slab[k].state == failed:
			q.fail(ErrRefused)
			return true
		case p.slab[k].state == pending:
			waiting++
		case p.slab[k].ref == 0:
			ownIdle += w
		}
		gap = k >= 0
	}
	switch {
	case missing == 0 && waiting == 0:
		h.hit(q)
		return true
	case missing == 0:
		h.stats.Joins++
		h.take(q)
		h.hang(q)
		return true
	}
	lack := int64(missing)*w - (h.c.Budget.Share - p.used)
	if lack > p.idleW-ownIdle {
		return false
	}
	if most := h.wire.runs - runs; p.victims(q.run, lack, most) > most {
		if p.back < lack {
			h.shed(v, q.run, lack-p.back)
		}
		return false // the credit comes with the answer
	}
	h.miss(q, lack)
	return true
}

// hit takes the buckets of q, which are all held.
func (h *Holder) hit(q *Request) {
	h.stats.Hits++
	h.take(q)
	h.ready(q)
}

// take adds a reference to those buckets of q that are in the table.
func (h *Holder) take(q *Request) {
	p := q.v.p
	for i := range q.run.Count {
		k := p.at.find(q.run.At(i))
		if k < 0 {
			continue
		}
		h.stats.BucketHits++
		x := &p.slab[k]
		if x.ref == 0 && x.state == held {
			p.wake(k)
		}
		x.ref++
		if x.why != byUse {
			h.came(q, x)
		}
	}
}

// miss makes q's missing buckets pending, and a flight that asks for them and gives up idle ones for lack units.
func (h *Holder) miss(q *Request, lack int64) {
	v := q.v
	p := v.p
	if q.ahead {
		h.stats.Ahead++
	} else {
		h.stats.Misses++
	}
	q.moved = true
	h.take(q) // before victims are chosen: what the request hits is no victim
	id := p.newFlight()
	f := &p.flights[id]
	for i := range q.run.Count {
		b := q.run.At(i)
		if p.at.find(b) >= 0 {
			continue
		}
		h.stats.BucketMisses++
		p.add(hose{b: b, ref: 1, state: pending, why: q.cause(), v: v})
		f.new = extend(f.new, b)
	}
	var old []Bucket
	for freed := int64(0); freed < lack; {
		b := p.evict()
		freed += b.Weight()
		old = append(old, b)
	}
	h.stats.Moves += uint64(len(old))
	p.pressed = p.pressed || len(old) > 0
	f.old = coalesce(f.old, old)
	if n := len(q.Put); n > 0 && n <= mostPut && h.wire.fits(len(f.new)+len(f.old), n) {
		f.carry, q.carrier = q, id+1
	}
	p.launch(id)
	h.hang(q)
	if !q.ahead && v.m.miss(q.off, q.n, 1<<v.shift) {
		h.reconsider(v)
	}
}

// reconsider changes the order of a view's buckets if what was seen says that it pays.
func (h *Holder) reconsider(v *View) {
	u := v.m.verdict(v.order)
	if v.fixed || h.c.Costs == (Costs{}) {
		return
	}
	b, most := h.c.Budget, h.wire.buckets
	order, cost := b.Order(u, h.c.Costs, most)
	if order != v.order && cost < gain*b.orderCost(u, h.c.Costs, most, v.order) {
		v.known = true
		v.setOrder(b.Shift, order)
		h.stats.Orders++
	}
}

// victims returns how many idle hoses, oldest first and none of keep, it takes to free lack units; it stops beyond most.
func (p *peer) victims(keep Run, lack int64, most int) (n int) {
	for i := p.idle.first(); i >= 0 && lack > 0 && n <= most; i = p.idle.after(i) {
		if b := p.slab[i].b; !keep.contains(b) {
			lack -= b.Weight()
			n++
		}
	}
	return n
}

// shed gives up idle hoses for lack units, none of keep, in as many moves as it takes.
func (h *Holder) shed(v *View, keep Run, lack int64) {
	p := v.p
	var old []Bucket
	for i := p.idle.first(); i >= 0 && lack > 0; {
		b := p.slab[i].b
		next := p.idle.after(i)
		if !keep.contains(b) {
			lack -= b.Weight()
			p.wake(i)
			p.drop(i)
			old = append(old, b)
		}
		i = next
	}
	h.giveUp(p, old)
}

// giveUp makes flights that only give up.
func (h *Holder) giveUp(p *peer, old []Bucket) {
	runs := coalesce(nil, old)
	for len(runs) > 0 {
		n := min(len(runs), h.wire.runs)
		id := p.newFlight()
		p.flights[id].old = append(p.flights[id].old, runs[:n]...)
		runs = runs[n:]
		h.stats.Sheds++
		p.launch(id)
	}
}

// tidy ends a call: it gives up what fell idle in ranges that are withdrawn, and lets the table shrink.
func (h *Holder) tidy(p *peer) {
	if len(p.drops) > 0 {
		h.giveUp(p, p.drops)
		p.drops = p.drops[:0]
	}
	h.recount(p)
	p.trim()
}

// newFlight returns an unused flight.
func (p *peer) newFlight() int32 {
	if n := len(p.rest); n > 0 {
		id := p.rest[n-1]
		p.rest = p.rest[:n-1]
		return id
	}
	p.flights = append(p.flights, flight{})
	return int32(len(p.flights) - 1)
}

// launch weighs a flight and puts it into the outbox.
func (p *peer) launch(id int32) {
	f := &p.flights[id]
	f.busy = true
	f.newW, f.oldW = weigh(f.new), weigh(f.old)
	p.charge(f)
	p.outbox = append(p.outbox, id)
}

// add enters a hose.
func (p *peer) add(x hose) {
	var i int32
	if n := len(p.free); n > 0 {
		i = p.free[n-1]
		p.free = p.free[:n-1]
		p.slab[i] = x
	} else {
		i = int32(len(p.slab))
		p.slab = append(p.slab, x)
	}
	x.v.held++
	p.at.insert(x.b, i)
}

// drop takes a hose, which is in no chain, out of the table. An empty table takes no memory.
func (p *peer) drop(i int32) {
	x := &p.slab[i]
	if x.why == byAhead && x.state == held {
		p.wasted++
	}
	p.at.remove(x.b)
	x.v.held--
	if x.v.closed && x.v.held == 0 {
		p.forget(x.v)
	}
	*x = hose{}
	p.free = append(p.free, i)
	if p.at.n == 0 {
		p.slab, p.free, p.idle = nil, nil, chain{}
	}
}

// trim moves the hoses together if the table has room for many more. No place in it may be kept across this.
func (p *peer) trim() {
	if !sparse(p.at.n, len(p.slab)) {
		return
	}
	p.slab, p.free = together(p.slab, &p.at, &p.idle, func(x *hose) (Bucket, bool) { return x.b, x.v != nil }), nil
}

// evict takes the hose that has been idle longest out of the table.
func (p *peer) evict() Bucket {
	i := p.idle.first()
	b := p.slab[i].b
	p.wake(i)
	p.drop(i)
	return b
}

// wake takes a hose out of the idle chain, rest puts it in.
func (p *peer) wake(i int32) {
	p.idle.remove(i)
	p.idleW -= p.slab[i].b.Weight()
}

// unref ends one use of a hose.
func (p *peer) unref(i int32) {
	x := &p.slab[i]
	x.ref--
	if x.ref == 0 {
		p.unused(i)
	}
}

// unused decides what becomes of a hose without references.
func (p *peer) unused(i int32) {
	x := &p.slab[i]
	switch {
	case x.state == pending: // the answer will find it so
	case x.state == failed || p.err != nil:
		p.drop(i)
	case x.v.closed:
		p.drops = append(p.drops, x.b)
		p.drop(i)
	default:
		p.idle.push(i)
		p.idleW += x.b.Weight()
	}
}

// forget removes a withdrawn view of which nothing is held.
func (p *peer) forget(v *View) {
	for i, o := range p.views {
		if o == v {
			p.views = append(p.views[:i], p.views[i+1:]...)
			return
		}
	}
}
