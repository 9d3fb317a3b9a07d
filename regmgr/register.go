package regmgr

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// miss is Acquire where no ready region serves the request.
func (m *Manager) miss(q Request) (*Region, error) {
	lo, hi := q.Mem.Addr(), q.Mem.Addr()+uint64(q.Mem.Bytes)
	if m.cfg.Policy == Bounce {
		m.counts.copyPolicy.Add(1)
		return nil, errCopyPolicy
	}
	waited := false
	for {
		r := m.index.find(lo, hi, q.Access)
		switch {
		case r == nil:
			r, again, err := m.register(q)
			if again {
				continue
			}
			return r, err
		case r.ref():
			if waited {
				m.counts.waits.Add(1)
			}
			m.count()
			return r, nil
		}
		// Somebody registers it: never twice. Or deregisters it: then on demand, when that is done. Or it has as many references as it can.
		waited = true
		m.waitFor("register", r.settled)
	}
}

// waitFor waits until cond holds.
func (m *Manager) waitFor(op string, cond func() bool) {
	sp := m.cfg.Sched.Begin(context.Background(), sched.What{Op: op, Peer: -1}, nil)
	defer sp.End()
	for !cond() {
		_ = sp.Step() // with a context that does not end and no watch there is no error
	}
}

// register registers the request's memory and takes a reference to it, but for one to come. again: somebody else began to in the meantime.
func (m *Manager) register(q Request) (r *Region, again bool, err error) {
	origin := mem.OriginOf(q.Mem)
	if origin == mem.Unknown { // of a stack perhaps, and often: nothing is allocated
		m.counts.copyOrigin.Add(1)
		return nil, false, errCopyOrigin
	}
	if l := m.exposureAt(q.Mem.Addr(), q.Mem.Addr()+uint64(q.Mem.Bytes)); l != nil {
		if r, again = m.join(l, q); r != nil || again {
			return r, again, nil
		}
	}
	r = &Region{access: q.Access, origin: origin, place: -1}
	if r.origin == mem.Foreign && q.Access&transport.LocalWrite != 0 && !writable(q.Mem, m.page) { // R7
		return nil, false, fmt.Errorf("%d bytes at %#x: %w; give a destination that this process may write", q.Mem.Bytes,
			q.Mem.Addr(), ErrReadOnly)
	}
	if q.Within.Bytes == 0 || !q.Within.Contains(q.Mem) {
		q.Within = q.Mem
	}
	r.mem = mem.Hidden(mem.Around(q.Mem, q.Within, m.page))
	if r.origin == mem.Heap {
		r.access |= transport.LocalWrite // it can be written, so the other direction will not register it again
	}
	r.lo, r.hi = r.mem.Addr(), r.mem.Addr()+uint64(r.mem.Bytes)
	r.pages = mem.Pages(r.mem, m.page)
	bytes := int64(r.pages) * int64(m.page)
	r.once = r.origin == mem.Heap && !m.mayStay(bytes) // R4
	if why := m.room(r, q.ahead); why != nil {
		return nil, false, m.noRoom(r, why, q.ahead)
	}
	if again, err = m.enter(r, q.ahead); again || err != nil {
		m.budget.withdraw(bytes, 1)
		return nil, again, err
	}
	if r.origin == mem.Heap && !m.cfg.NoPin {
		r.pin = new(runtime.Pinner) // R3
		r.pin.Pin(&r.mem.Data()[0])
	}
	for {
		seen := m.stirred.Load()
		if r.key, err = m.cfg.Registrar.Register(r.mem, r.access); err == nil {
			break
		}
		m.counts.refused.Add(1)
		if isLimit(err) {
			m.refusedNow()
		}
		if !isLimit(err) || !m.cfg.Policy.evicts() || !m.yield(q.ahead) && !m.awaitRoom(q.ahead, seen) {
			m.unenter(r)
			return nil, false, m.noRoom(r, err, q.ahead)
		}
	}
	m.budget.stand(bytes, 1)
	m.counts.registrations.Add(1)
	if q.ahead {
		m.counts.ahead.Add(1)
	}
	m.begin(r, q.ahead)
	return r, false, nil
}

// begin makes r, whose memory is registered now, ready, with a reference unless that is ahead of its use.
func (m *Manager) begin(r *Region, ahead bool) {
	refs := uint64(0)
	if !ahead {
		refs = 1
		m.count()
	}
	m.mu.Lock()
	if m.cfg.Policy == Predictive {
		r.spot = m.spots.of(r, m.idle.heap)
	}
	r.word.Store(word(ready, refs, m.tick()))
	m.idle.add(r)
	if m.cfg.NoPin {
		r.mem = mem.Range{Bytes: r.mem.Bytes}
	}
	m.mu.Unlock()
}

// room takes what a region needs from the budget, giving idle regions up for it. Its error says why there is none.
func (m *Manager) room(r *Region, ahead bool) error {
	bytes := int64(r.pages) * int64(m.page)
	evicts := m.cfg.Policy.evicts()
	switch {
	case r.once && ahead, !m.budget.holds(bytes, 1):
		return errTooLarge
	case r.origin == mem.Heap && !r.once && evicts && !m.heapRoom(bytes, ahead) && ahead:
		return errBudgetFull
	}
	if !m.belowCeiling(bytes, ahead) {
		return errCeiling
	}
	for {
		seen := m.stirred.Load()
		answer := m.budget.take(bytes, 1)
		switch {
		case answer == granted:
			return nil
		case !evicts:
			return errBudgetFull
		case answer == fullOwn && m.spare(ahead), answer == fullAll && m.yield(ahead), m.awaitRoom(ahead, seen):
		default:
			return errBudgetFull
		}
	}
}

// enter makes r, which is about to be registered, known. again: another caller was faster. The error is errGone where a use to
// come is no longer possible, because the memory's lifetime has ended.
func (m *Manager) enter(r *Region, ahead bool) (again bool, err error) {
	lo, hi := r.lo, r.hi
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.index.find(lo, hi, r.access) != nil {
		return true, nil // R2: the same memory is not registered twice at a time
	}
	switch {
	case r.bucket != nil:
		if r.lifetime.ended {
			return false, errGone
		}
	case r.origin == mem.Foreign:
		r.lifetime = m.lifetimeLocked(r)
		r.once = r.lifetime == nil // R5
		r.alone = r.once
		if ahead && r.once {
			return false, errGone
		}
	}
	partial, rights := false, false
	m.index.each(lo, hi, func(o *Region) bool {
		rights = rights || o.serves(lo, hi, 0)
		partial = true
		return !rights
	})
	switch {
	case ahead, r.bucket != nil && r.bucket.ready:
	case rights:
		m.counts.missRights.Add(1)
	case partial:
		m.counts.missPartial.Add(1)
	default:
		m.counts.missCold.Add(1)
	}
	r.word.Store(word(registering, 0, 0))
	bytes := int64(r.pages) * int64(m.page)
	if !m.index.insert(r) {
		r.once = true
	}
	m.heapLocked(r, bytes)
	return false, nil
}

// unenter takes back enter and what room took.
func (m *Manager) unenter(r *Region) {
	if r.pin != nil {
		r.pin.Unpin()
	}
	m.forget(r)
	r.word.Store(word(dead, 0, 0))
}

// forget takes a region out of index, list and budget.
func (m *Manager) forget(r *Region) {
	bytes := int64(r.pages) * int64(m.page)
	m.mu.Lock()
	m.unlistLocked(r)
	m.heapLocked(r, -bytes)
	m.mu.Unlock()
	switch {
	case r.bucket != nil:
		m.budget.part(bytes, 1)
	case r.state() == registering:
		m.budget.withdraw(bytes, 1)
	default:
		m.budget.give(bytes, 1)
	}
}

// unlistLocked has nobody find a region any more.
func (m *Manager) unlistLocked(r *Region) {
	if r.self.r != nil { // else its addresses are such as the index does not know
		m.index.remove(r)
		m.hints.forget(r)
	}
	m.idle.remove(r)
}

// drop deregisters a region that the caller has retired, and counts it.
func (m *Manager) drop(r *Region, why *counter) {
	m.stirring.Add(1)
	defer m.still()
	if r.bucket != nil {
		m.leave(r)
		return
	}
	if err := m.cfg.Registrar.Deregister(r.key); err != nil {
		m.counts.stuck.Add(1)
		m.mu.Lock() // R3: the NIC may still look at it, so it stays pinned and charged
		m.unlistLocked(r)
		m.stuck = append(m.stuck, r)
		if m.refusal == nil {
			m.refusal = fmt.Errorf("deregister %d bytes at %#x: %w", r.mem.Bytes, r.lo, err)
		}
		m.mu.Unlock()
		r.word.Store(word(dead, 0, 0))
		return
	}
	if r.pin != nil {
		r.pin.Unpin()
	}
	why.Add(1)
	m.counts.deregistrations.Add(1)
	m.counts.freed.Add(uint64(r.pages) * uint64(m.page))
	m.forget(r)
	r.word.Store(word(dead, 0, 0))
}

// evict gives up the idle region whose last use lies farthest back, of those that ok accepts (nil: all); where uses are
// predicted, one that nobody is known to need, or else the one that is needed latest. It reports whether there was one.
func (m *Manager) evict(ok func(*Region) bool) bool {
	m.mu.Lock()
	var r *Region
	if m.cfg.Policy == Predictive {
		r = m.idle.oldest(func(r *Region) bool { return unexpected(r) && (ok == nil || ok(r)) }, always)
		if r == nil {
			r = m.idle.latest(ok)
		}
	}
	if r == nil {
		r = m.idle.oldest(ok, always)
	}
	m.mu.Unlock()
	if r == nil {
		return false
	}
	m.drop(r, &m.counts.evicted)
	return true
}

// unexpected reports whether no use of r is predicted.
func unexpected(r *Region) bool { return r.expected.Load() == 0 }

// spare gives an idle region up for another one. For one that is registered ahead of its use it must be one of which no use
// is predicted: which of the others is needed later than that one is for the predictor to say.
func (m *Manager) spare(ahead bool) bool {
	if ahead {
		return m.evict(unexpected)
	}
	return m.evict(nil)
}

// Reasons why there is no room; noRoom adds the figures.
var (
	errBudgetFull = errors.New("the budget is full of memory in use")
	errTooLarge   = errors.New("the request alone exceeds the limit")
	errCeiling    = errors.New("the NIC has refused as much before")
)
