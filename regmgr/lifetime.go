package regmgr

import (
	"fmt"
	"slices"

	"gopgas/internal/mem"
)

// Lifetime is the owner's word that memory which is not Go's, such as a mapping, stays what it is until End. While it
// lasts, registrations of that memory are kept as those of Go memory are.
type Lifetime struct {
	m      *Manager
	lo, hi uint64
	ended  bool    // guarded by Manager.mu
	in     buckets // of exposed memory; nil: it is none
}

// Keep begins a lifetime for the memory of b, which lies outside the Go heap and in no other lifetime. Go memory needs
// none. The error wraps ErrLifetime.
func (m *Manager) Keep(b []byte) (*Lifetime, error) {
	r := mem.Of(b)
	if o := mem.OriginOf(r); o != mem.Foreign {
		return nil, fmt.Errorf("%w: %d bytes of %s memory: want memory outside the Go heap; what lies in it needs no lifetime", ErrLifetime, len(b), o)
	}
	l := &Lifetime{m: m, lo: r.Addr(), hi: r.Addr() + uint64(r.Bytes)}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.lifetimes {
		if l.lo < o.hi && o.lo < l.hi {
			return nil, fmt.Errorf("%w: %d bytes at %#x overlap the lifetime of %d bytes at %#x; end that one before", ErrLifetime,
				len(b), l.lo, o.hi-o.lo, o.lo)
		}
	}
	m.lifetimes = append(m.lifetimes, l)
	return l, nil
}

// lifetimeLocked returns the lifetime that r lies in, or nil.
func (m *Manager) lifetimeLocked(r *Region) *Lifetime {
	for _, l := range m.lifetimes {
		if !l.ended && r.lo >= l.lo && r.hi <= l.hi {
			return l
		}
	}
	if l := m.exposureAt(r.lo, r.hi); l != nil && !l.ended {
		return l
	}
	return nil
}

// End ends the lifetime: when it returns, no registration of the memory is left that was kept because of it, and the owner may unmap
// it. It waits for transfers that use the memory. Ending it again, or a nil one, does nothing.
func (l *Lifetime) End() {
	if l == nil {
		return
	}
	for r := l.over(); r != nil; r = l.over() {
		l.m.waitFor("end of a lifetime", func() bool {
			s := r.state()
			return s == dead || s == ready && (r.references() == 0)
		})
	}
}

// over ends the lifetime as far as that can be done without waiting, and returns a region of it that is in use, or nil: then it is over.
func (l *Lifetime) over() (used *Region) {
	m := l.m
	m.mu.Lock()
	l.ended = true
	m.mu.Unlock()
	for r := m.oneOf(l); r != nil; r = m.oneOf(l) {
		if !r.retire() {
			return r
		}
		m.drop(r, &m.counts.ended)
	}
	m.forgetLifetime(l)
	return nil
}

// forgetLifetime takes l, which has ended, out of what there is.
func (m *Manager) forgetLifetime(l *Lifetime) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is := func(o *Lifetime) bool { return o == l }
	m.lifetimes = slices.DeleteFunc(m.lifetimes, is)
	m.setExposed(slices.DeleteFunc(slices.Clone(m.exposures()), is))
}

// oneOf returns a region of the lifetime, or one that has none and is there for a transfer that uses the memory all the same, that is not dead, or nil.
func (m *Manager) oneOf(l *Lifetime) (found *Region) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index.each(l.lo, l.hi, func(r *Region) bool {
		used := r.lifetime == l || r.lifetime == nil && r.origin == mem.Foreign && r.lo < l.hi && l.lo < r.hi
		if used && r.state() != dead {
			found = r
		}
		return found == nil
	})
	return found
}
