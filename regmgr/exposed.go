package regmgr

import (
	"slices"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// bucket is a piece of exposed memory that is registered as a whole.
type bucket struct {
	id    uint64 // among those of the memory
	ready bool   // it was registered before
}

// buckets are the registrations of exposed memory that its owner makes for other ranks, under the manager's budget (Lend). His own transfers
// use them, too. The methods are called without any lock of the manager's. *hose.Set has them.
type buckets interface {
	// Find returns the bucket whose registration serves r, which lies in the memory: its number among the memory's, all of it, and whether it
	// is registered; ok is false where r is better off with a registration of its own.
	Find(r mem.Range) (id uint64, whole mem.Range, ready, ok bool)
	// Pin has the bucket registered, if it is not, and keeps it so until Unpin. It does not wait; any error is a refusal.
	Pin(id uint64) (transport.Region, error)
	// Unpin ends that. The bucket is deregistered unless other ranks use it; freed are the bytes of which there are more then.
	Unpin(id uint64) (freed int64)
}

// Expose tells that the owner of r exposes it bucket by bucket, and who registers them, until the lifetime that it returns is over: then this rank's own transfers
// use the same registrations as the others', where one bucket serves them, and what they have registered otherwise of r stays as in any
// lifetime, whosever memory it is. Memory that is exposed twice is looked for in the first one.
func (m *Manager) Expose(r mem.Range, in buckets) *Lifetime {
	l := &Lifetime{m: m, lo: r.Addr(), hi: r.Addr() + uint64(r.Bytes), in: in}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setExposed(append(slices.Clone(m.exposures()), l))
	return l
}

func (m *Manager) exposures() []*Lifetime {
	if all := m.exposed.Load(); all != nil {
		return *all
	}
	return nil
}

func (m *Manager) setExposed(all []*Lifetime) {
	if len(all) == 0 {
		m.exposed.Store(nil)
		return
	}
	m.exposed.Store(&all)
}

// exposureAt returns the exposed memory that [lo, hi) lies in, or nil.
func (m *Manager) exposureAt(lo, hi uint64) *Lifetime {
	for _, l := range m.exposures() {
		if l.lo <= lo && hi <= l.hi {
			return l
		}
	}
	return nil
}

// Over ends the lifetime without waiting for transfers that use the memory: it reports whether no registration of it is left that is the
// cache's. Called again until it does, it does what End does. A nil one is over.
func (l *Lifetime) Over() bool { return l == nil || l.over() == nil }

// mostSpare is how many times as large as a request a bucket may be for which the cache gives other regions up.
const mostSpare = 4

// join has the request served by the registration of a bucket of the exposed memory l, and takes a reference, but for a use to come. r is
// nil where there is none for it, or no room: then the request needs a registration of its own. again is as for register.
func (m *Manager) join(l *Lifetime, q Request) (r *Region, again bool) {
	id, whole, cached, ok := l.in.Find(mem.Hidden(q.Mem)) // which is on no stack
	if !ok {
		return nil, false
	}
	r = &Region{
		access: transport.AllAccess, origin: mem.Foreign, place: -1, lifetime: l, bucket: &bucket{id, cached}, mem: mem.Hidden(whole),
		lo: whole.Addr(), hi: whole.Addr() + uint64(whole.Bytes), pages: mem.Pages(whole, m.page),
	}
	bytes := int64(r.pages) * int64(m.page)
	if !m.roomBeside(bytes, r.pages > mostSpare*mem.Pages(q.Mem, m.page), q.ahead) {
		return nil, false
	}
	again, err := m.enter(r, q.ahead)
	if again || err != nil {
		m.budget.part(bytes, 1)
		return nil, again
	}
	if r.key, err = l.in.Pin(id); err != nil {
		m.unenter(r)
		return nil, false
	}
	m.counts.joined.Add(1)
	if !cached && !q.ahead {
		m.counts.joinedCold.Add(1)
	}
	m.begin(r, q.ahead)
	return r, false
}

// roomBeside takes what a bucket needs of the cache's part of the budget, giving idle regions up for it unless it is wide.
func (m *Manager) roomBeside(bytes int64, wide, ahead bool) bool {
	for m.budget.holds(bytes, 1) {
		if m.budget.join(bytes, 1) {
			return true
		}
		if wide || !m.cfg.Policy.evicts() || !m.spare(ahead) {
			break
		}
	}
	return false
}

// leave is drop for a region that is a bucket.
func (m *Manager) leave(r *Region) {
	freed := r.lifetime.in.Unpin(r.bucket.id)
	m.counts.freed.Add(uint64(freed))
	m.forget(r)
	r.word.Store(word(dead, 0, 0))
}
