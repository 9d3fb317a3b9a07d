package firehose

// A prediction of uses may look after a Holder's firehoses: it asks for buckets ahead of their use, says when each is
// expected to be used next, and which may be given up first.

// mostLooked is how many idle firehoses are looked at for one that is needed later than another.
const mostLooked = 64

// Ahead asks for bucket b of the view before anybody needs it; the use is expected at due. It reports whether the bucket is
// held or asked for now. It is not if requests are blocked already, if firehoses in use must come free, or if every idle one
// that could be given up for it, of those looked at, is needed earlier. Send must be called after it.
func (h *Holder) Ahead(v *View, b Bucket, due int64) bool {
	p := v.p
	if i := p.at.find(b); i >= 0 {
		p.slab[i].due = due
		return true
	}
	if p.err != nil || p.first != nil || v.closed || b.Order() != v.order || !v.r.has(h.c.Budget.Shift, Run{b, 1}) || b.Weight() > h.c.Budget.Share {
		return false
	}
	off, n := v.r.Extent(h.c.Budget.Shift, b)
	if p.used+b.Weight() > h.c.Budget.Share && !p.prefer(due) {
		return false
	}
	q := &Request{v: v, off: off, n: n, run: Run{b, 1}, ahead: true, abandoned: true}
	if !h.attempt(q) || q.state != Waiting {
		return false
	}
	p.slab[p.at.find(b)].due = due
	p.trim()
	return true
}

// came ends the wait of a hose that was asked for before its use: q is that, unless it only fetches.
func (h *Holder) came(q *Request, x *hose) {
	if q.cause() != byUse {
		return
	}
	q.came, x.why = x.why, byUse
	switch {
	case q.came != byAhead:
	case x.state == pending:
		h.stats.Late++
	default:
		h.stats.Foreseen++
	}
}

// prefer puts the idle firehose that is needed last first in the queue, and reports whether that is later than due. One of
// which no use is expected is needed last.
func (p *peer) prefer(due int64) bool {
	best := int32(-1)
	for i, n := p.idle.first(), 0; i >= 0 && n < mostLooked; i, n = p.idle.after(i), n+1 {
		if p.slab[i].due == 0 {
			best = i
			break
		}
		if p.slab[i].due > due && (best < 0 || p.slab[i].due > p.slab[best].due) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	p.idle.remove(best)
	p.idle.pushFirst(best)
	return true
}

// Expect says when bucket b of the view is expected to be used next; 0: nobody knows. Nothing happens if it is not held.
func (h *Holder) Expect(v *View, b Bucket, due int64) {
	if i := v.p.at.find(b); i >= 0 {
		v.p.slab[i].due = due
	}
}

// Yield makes a firehose that is idle the first to be given up, and reports whether it was: its next use lies further ahead
// than it takes to ask for it again.
func (h *Holder) Yield(v *View, b Bucket) bool {
	p := v.p
	i := p.at.find(b)
	if i < 0 || p.slab[i].state != held || p.slab[i].ref > 0 {
		return false
	}
	p.idle.remove(i)
	p.idle.pushFirst(i)
	return true
}

// Knows reports whether bucket b of the view is held or asked for.
func (h *Holder) Knows(v *View, b Bucket) bool { return v.p.at.find(b) >= 0 }
