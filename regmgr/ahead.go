package regmgr

import (
	"errors"
	"slices"
	"weak"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// spot is memory that was registered once and may be again, under a number that stays the same as long as the memory is the
// same. It keeps no Go object alive: a weak pointer tells whether there is one still.
type spot struct {
	id       uint64
	lo, hi   uint64
	access   transport.Access
	heap     weak.Pointer[byte] // of a Go object's bytes from lo on
	origin   mem.Origin
	lifetime *Lifetime
}

// errGone: what a spot stood for is no longer there.
var errGone = errors.New("the memory is gone")

// spotsLeast is how many spots are kept before the dead ones are looked for, and spotsMost how many there may be of memory that is not registered.
const (
	spotsLeast = 1024
	spotsMost  = 1 << 16
)

// spots are the spots by number and by place. Guarded by Manager.mu.
type spots struct {
	last  uint64
	byID  map[uint64]*spot
	at    map[[2]uint64]*spot // by lo, hi
	sweep int                 // how many there may be before the next look for dead ones
}

// of returns the spot of a region. registered are those that there are.
func (s *spots) of(r *Region, registered []*Region) *spot {
	if s.byID == nil {
		s.byID, s.at, s.sweep = make(map[uint64]*spot), make(map[[2]uint64]*spot), spotsLeast
	}
	if p := s.at[[2]uint64{r.lo, r.hi}]; p != nil && p.alive() && p.origin == r.origin && p.lifetime == r.lifetime {
		p.access |= r.access
		return p
	}
	if len(s.byID) >= s.sweep {
		s.clean(registered)
	}
	s.last++
	p := &spot{id: s.last, lo: r.lo, hi: r.hi, access: r.access, origin: r.origin, lifetime: r.lifetime}
	if r.origin == mem.Heap {
		p.heap = weak.Make(&r.mem.Data()[0])
	}
	if old := s.at[[2]uint64{r.lo, r.hi}]; old != nil {
		delete(s.byID, old.id)
	}
	s.byID[p.id], s.at[[2]uint64{r.lo, r.hi}] = p, p
	return p
}

// clean forgets the spots whose memory is gone. Where there are too many even so, because of ever other parts of memory that stays, it forgets all whose memory is not
// registered: what was to be registered ahead of a use is gone for whoever asks, and learnt anew.
func (s *spots) clean(registered []*Region) {
	s.forget(func(p *spot) bool { return !p.alive() })
	if len(s.byID) >= spotsMost {
		stay := make(map[*spot]bool, len(registered))
		for _, r := range registered {
			stay[r.spot] = true
		}
		s.forget(func(p *spot) bool { return !stay[p] })
	}
	s.sweep = max(spotsLeast, min(2*len(s.byID), len(s.byID)+spotsMost))
}

// forget forgets spots.
func (s *spots) forget(which func(*spot) bool) {
	for id, p := range s.byID {
		if which(p) {
			delete(s.byID, id)
			delete(s.at, [2]uint64{p.lo, p.hi})
		}
	}
}

// alive reports whether the memory is still what it was. Foreign memory is only while a lifetime says so.
func (p *spot) alive() bool {
	if p.origin == mem.Heap {
		return p.heap.Value() != nil
	}
	return p.lifetime != nil && !p.lifetime.ended
}

// memory returns the spot's memory; the Go object lives as long as the caller holds it.
func (p *spot) memory() (mem.Range, bool) {
	if p.origin != mem.Heap {
		return mem.At(uintptr(p.lo), int(p.hi-p.lo)), p.alive()
	}
	base := p.heap.Value()
	if base == nil {
		return mem.Range{}, false
	}
	return mem.Extend(base, int(p.hi-p.lo)), true
}

// spotByID returns a copy of a spot: its rights may grow under mu.
func (m *Manager) spotByID(id uint64) (spot, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.spots.byID[id]
	if p == nil {
		return spot{}, false
	}
	return *p, true
}

// registered reports whether the spot's memory is registered.
func (m *Manager) registered(p *spot) bool {
	r := m.index.find(p.lo, p.hi, p.access)
	return r != nil && r.state() == ready
}

// registerAhead registers the spot's memory ahead of a use: the region is idle on return. The error is errGone, or wraps ErrCopy
// where there is no room.
func (m *Manager) registerAhead(p *spot) error {
	for {
		m.mu.Lock()
		memory, ok := p.memory()
		m.mu.Unlock()
		if !ok {
			return errGone
		}
		if r := m.index.find(p.lo, p.hi, p.access); r != nil {
			m.waitFor("register", func() bool { s := r.state(); return s == ready || s == dead })
			if r.state() == ready {
				return nil
			}
			continue
		}
		if again, err := m.idleAhead(Request{Mem: memory, Access: p.access, ahead: true}); !again {
			return err
		}
	}
}

// idleAhead registers q and leaves it idle.
func (m *Manager) idleAhead(q Request) (again bool, err error) {
	m.stirring.Add(1)
	defer m.still()
	r, again, err := m.register(q)
	if again || err != nil {
		return again, err
	}
	if !r.once {
		return false, nil
	}
	if r.retire() {
		m.drop(r, &m.counts.released)
	}
	return false, errCopyOnce
}

// still ends what stirring counts: something at whose end there may be more room, which is a registration ahead of a use, since that gives way
// to one that is needed now, or a deregistration.
func (m *Manager) still() {
	m.stirred.Add(1)
	m.stirring.Add(-1)
}

// awaitRoom waits for something that stirs, for who needs room now and found none; seen is stirred before he looked. It reports whether
// anything has ended since, so that he is to look again.
func (m *Manager) awaitRoom(ahead bool, seen uint64) bool {
	if ahead {
		return false
	}
	if m.stirring.Load() != 0 {
		m.waitFor("register", func() bool { return m.stirring.Load() == 0 || m.stirred.Load() != seen })
	}
	return m.stirred.Load() != seen
}

// giveBack deregisters the spot's own regions that are idle, and reports whether there was one. A larger region around them
// is another spot's: it has uses of its own, and to give that one back instead would leave this one for good.
func (m *Manager) giveBack(p *spot) (done bool) {
	m.own(p, func(r *Region) {
		if r.retire() {
			m.drop(r, &m.counts.released)
			done = true
		}
	})
	return done
}

// expect notes when the spot's next use is predicted.
func (m *Manager) expect(p *spot, at int64) {
	m.own(p, func(r *Region) { r.expected.Store(at) })
}

// own calls f for the registered regions of exactly the spot's memory: more than one if their rights differ.
func (m *Manager) own(p *spot, f func(*Region)) {
	var found []*Region // a region may stand in the index more than once, and f may take it out
	m.index.each(p.lo, p.hi, func(r *Region) bool {
		if r.lo == p.lo && r.hi == p.hi && r.state() == ready && !slices.Contains(found, r) {
			found = append(found, r)
		}
		return true
	})
	for _, r := range found {
		f(r)
	}
}
