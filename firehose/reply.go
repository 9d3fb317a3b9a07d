package firehose

import "fmt"

// Send hands planned moves to m, to every peer or until there is no room. Call it whenever something may have been
// planned, and again after progress; it returns whether moves are still waiting.
func (h *Holder) Send(m Mover) (more bool) {
	for rank := range h.peers {
		if len(h.peers[rank].outbox) > 0 && h.SendTo(m, rank) {
			more = true
		}
	}
	return more
}

// SendTo is Send for the moves to one peer.
func (h *Holder) SendTo(m Mover, rank int) (more bool) {
	p := &h.peers[rank]
	for len(p.outbox) > 0 {
		id := p.outbox[0]
		f := &p.flights[id]
		move := Move{ID: uint64(f.gen)<<32 | uint64(id), New: f.new, Old: f.old}
		if q := f.carry; q != nil {
			move.Put = Put{Range: q.v.r.ID, Off: q.off, Data: q.Put}
		}
		sent, err := m.Move(rank, &move)
		if err != nil {
			h.Lost(rank, err)
			return false
		}
		if !sent {
			return true
		}
		p.outbox = p.outbox[:copy(p.outbox, p.outbox[1:])]
	}
	return false
}

// Reply takes in a peer's answer to a move. Requests that had to wait for it change their state. Call Send after it.
func (h *Holder) Reply(rank int, r *Reply) error {
	p := &h.peers[rank]
	id := r.ID & (1<<32 - 1)
	if id >= uint64(len(p.flights)) || !p.flights[id].busy || uint64(p.flights[id].gen) != r.ID>>32 {
		if p.err != nil {
			return nil // the last word of a rank that was given up
		}
		return fmt.Errorf("%w: rank %d answers a move that was not made", ErrMove, rank)
	}
	f := p.flights[id]
	p.flights[id] = flight{gen: f.gen + 1, new: f.new[:0], old: f.old[:0]}
	status, err := r.Status, error(nil)
	if want := count(f.new); status == statusGranted && len(r.Keys) != want || status > statusMalformed {
		status = statusMalformed
		err = fmt.Errorf("%w: rank %d granted %d keys with status %d, %d were asked for", ErrMove, rank, len(r.Keys), r.Status, want)
	}
	if f.carry != nil {
		f.carry.carried, f.carry.carrier = r.Stored, 0
	}
	p.settle(&f, status == statusGranted)
	if status != statusGranted {
		h.stats.Refusals++
	}
	h.land(p, &f, r.Keys, status.err())
	p.rest = append(p.rest, int32(id)) // only now: its lists were in use
	h.pump(p)
	h.tidy(p)
	return err
}

func count(runs []Run) (n int) {
	for _, r := range runs {
		n += int(r.Count)
	}
	return n
}

// land gives the hoses of a flight their new state, with their keys or an error, and then wakes those that hang on them.
func (h *Holder) land(p *peer, f *flight, keys []uint64, err error) {
	var waiters *Request
	for _, run := range f.new {
		for k := range run.Count {
			i := p.at.find(run.At(k))
			x := &p.slab[i]
			if err == nil {
				x.key, x.state = keys[0], held
				keys = keys[1:]
			} else {
				x.state = failed
			}
			for q := x.wait; q != nil; {
				next := q.next
				q.next, waiters = waiters, q
				q = next
			}
			x.wait = nil
			if x.ref == 0 { // everybody has lost interest
				p.unused(i)
			}
		}
	}
	for waiters != nil {
		q := waiters
		waiters, q.next = q.next, nil
		if err == nil {
			h.hang(q)
		} else {
			h.reject(q, err)
		}
	}
}

// hang lets q wait at the first of its buckets that is pending; if none is, it is ready.
func (h *Holder) hang(q *Request) {
	if q.err != nil {
		h.reject(q, q.err)
		return
	}
	p := q.v.p
	for ; q.scan < q.run.Count; q.scan++ {
		x := &p.slab[p.at.find(q.run.At(q.scan))]
		switch x.state {
		case pending:
			q.next, x.wait = x.wait, q
			q.state = Waiting
			return
		case failed:
			h.reject(q, ErrRefused)
			return
		}
	}
	h.ready(q)
}

// ready gives q its keys.
func (h *Holder) ready(q *Request) {
	p := q.v.p
	q.more = q.more[:0]
	for i := range q.run.Count {
		key := p.slab[p.at.find(q.run.At(i))].key
		if i == 0 {
			q.key = key
		} else {
			q.more = append(q.more, key)
		}
	}
	q.state = Ready
	if q.abandoned {
		h.letGo(q)
		q.state, q.abandoned = Idle, false
	}
}

// reject ends a request whose buckets it had taken. One whose Put is on its way waits for the answer to that first: till then the bytes may be sent, and stored, and whoever
// had it fail could send them by message, and others behind them, before.
func (h *Holder) reject(q *Request, err error) {
	if q.err == nil {
		q.err = err
	}
	if q.carrier != 0 {
		p := q.v.p
		own := p.flights[q.carrier-1].new[0].First
		x := &p.slab[p.at.find(own)]
		q.scan = uint32(own - q.run.First)
		q.next, x.wait = x.wait, q
		q.state = Waiting
		return
	}
	h.letGo(q)
	q.abandoned = false
	q.fail(q.err)
}

// letGo drops q's references.
func (h *Holder) letGo(q *Request) {
	p := q.v.p
	for i := range q.run.Count {
		p.unref(p.at.find(q.run.At(i)))
	}
}

// block appends q to the requests that wait for firehoses to come free. They are served in order, and nobody passes
// them: what falls idle is kept until the first of them has enough.
func (h *Holder) block(q *Request) {
	h.stats.Blocked++
	q.state, q.blocked = Waiting, true
	p := q.v.p
	if p.first == nil {
		p.first = q
	} else {
		p.end.next = q
	}
	p.end = q
}

// unblock takes q out of the blocked ones.
func (p *peer) unblock(q *Request) {
	var before *Request
	for o := p.first; o != q; o = o.next {
		before = o
	}
	if before == nil {
		p.first = q.next
	} else {
		before.next = q.next
	}
	if p.end == q {
		p.end = before
	}
	q.next, q.blocked = nil, false
}

// pump lets blocked requests go on, in order, as far as it goes.
func (h *Holder) pump(p *peer) {
	for p.first != nil {
		q := p.first
		p.first = q.next // attempt may reuse the link
		q.next = nil
		if !h.attempt(q) {
			q.next, p.first = p.first, q
			return
		}
		q.blocked = false
		if p.first == nil {
			p.end = nil
		}
	}
}

// Withdraw handles the wish of a peer to have a range back: nobody is given it any more, and what is held of it is given
// up at once or when it is released. Call Send after it.
func (h *Holder) Withdraw(rank int, id uint32) {
	p := &h.peers[rank]
	for _, v := range p.views {
		if v.r.ID != id || v.closed {
			continue
		}
		v.closed = true
		for q := p.first; q != nil; {
			next := q.next
			if q.v == v {
				p.unblock(q)
				q.fail(ErrWithdrawn)
			}
			q = next
		}
		for i := p.idle.first(); i >= 0; {
			next := p.idle.after(i)
			if p.slab[i].v == v {
				p.wake(i)
				p.unused(i)
			}
			i = next
		}
		h.pump(p)
		if v.held == 0 {
			p.forget(v)
		}
		h.tidy(p)
		return
	}
}

// Lost ends everything with a peer that is gone: requests that wait for it fail with err. What is Ready stays so until it
// is released.
func (h *Holder) Lost(rank int, err error) {
	p := &h.peers[rank]
	if p.err != nil {
		return
	}
	p.err = err
	for q := p.first; q != nil; q = p.first {
		p.unblock(q)
		q.fail(err)
	}
	for i := p.idle.first(); i >= 0; i = p.idle.first() {
		p.evict()
	}
	p.outbox, p.drops = nil, nil
	for id := range p.flights {
		f := p.flights[id]
		if f.busy {
			p.flights[id] = flight{gen: f.gen + 1}
			if f.carry != nil {
				f.carry.carrier = 0
			}
			h.land(p, &f, nil, err)
		}
	}
	p.used, p.back = 0, 0
	p.trim()
}
