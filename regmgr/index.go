package regmgr

import (
	"fmt"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// The index finds the regions that cover an address: a tree by address of four levels, as a page table is. A slot that
// a region covers whole lists it there and not below, so that entering a large region takes few steps.
const (
	pageBits  = 12 // of the last level; unrelated to the machine's pages
	levelBits = 9
	levelSize = 1 << levelBits
	topShift  = pageBits + 3*levelBits
	addrBits  = topShift + levelBits
)

// index is changed by one goroutine at a time and read by any.
type index struct{ top atomic.Pointer[level] }

type level [levelSize]slot

type slot struct {
	list  atomic.Pointer[entry]
	child atomic.Pointer[level]
}

// entry is a link of a slot's list. Links do not change once they can be seen.
type entry struct {
	r    *Region
	next *entry
}

// hints are the regions last found for some addresses: a few hot buffers need no walk down the tree. A region stands here
// only while it is in the index, or is referenced.
type hints [64]atomic.Pointer[Region]

func (h *hints) at(lo uint64) *atomic.Pointer[Region] {
	return &h[lo*0x9e3779b97f4a7c15>>58]
}

// forget takes r, which nobody can refer to any more, out.
func (h *hints) forget(r *Region) {
	for i := range h {
		if h[i].Load() == r {
			h[i].CompareAndSwap(r, nil)
		}
	}
}

// find returns a region that serves [lo, hi), a ready one if there is any.
func (x *index) find(lo, hi uint64, a transport.Access) *Region {
	if lo>>addrBits != 0 {
		return nil
	}
	var other *Region
	l := x.top.Load()
	if l == nil {
		return nil
	}
	for shift := uint(topShift); ; shift -= levelBits {
		s := &l[lo>>shift%levelSize]
		for e := s.list.Load(); e != nil; e = e.next {
			if r := e.r; r.serves(lo, hi, a) {
				switch r.state() {
				case ready:
					return r
				case registering, leaving:
					other = r
				}
			}
		}
		if l = s.child.Load(); l == nil {
			return other
		}
	}
}

// Known says what a transfer of m may expect without asking for a registration: whether m is registered with the rights, and
// whether a registration of it would stay for the next transfer. It takes no reference, so that what it says may have
// changed when the transfer asks.
func (m *Manager) Known(r mem.Range, a transport.Access) (covered, stays bool) {
	lo := r.Addr()
	hi := lo + uint64(r.Bytes)
	if o := m.hints.at(lo).Load(); o != nil && o.serves(lo, hi, a) && o.state() == ready { // who asks acquires it next, and finds it there
		return true, !o.once
	}
	if o := m.index.find(lo, hi, a); o != nil && o.state() == ready {
		return true, !o.once
	}
	if l := m.exposureAt(lo, hi); l != nil && m.cfg.Policy != Bounce {
		if _, _, cached, ok := l.in.Find(mem.Hidden(r)); ok && cached {
			return true, m.keeps.Load()
		}
	}
	switch mem.OriginOf(r) {
	case mem.Heap:
		return false, m.keeps.Load()
	case mem.Foreign:
		m.mu.Lock()
		defer m.mu.Unlock()
		return false, m.keeps.Load() && m.lifetimeLocked(&Region{lo: lo, hi: hi}) != nil
	}
	return false, false
}

// Hot reports whether m is registered with the rights and was among the last that were found: Known without a search, for who goes on otherwise where
// that would be needed. It looks at two lines of memory that Acquire looks at too; false says nothing.
func (m *Manager) Hot(r mem.Range, a transport.Access) bool {
	lo := r.Addr()
	o := m.hints.at(lo).Load()
	if m.names != nil { // which addresses share a hint is chance
		o = m.index.find(lo, lo+uint64(r.Bytes), a)
	}
	return o != nil && o.serves(lo, lo+uint64(r.Bytes), a) && o.state() == ready
}

// Destination returns an error that wraps ErrReadOnly if r cannot be written, for who copies into it without registering it. It
// asks the kernel about memory that is not Go's, which takes some microseconds.
func (m *Manager) Destination(r mem.Range) error {
	if mem.OriginOf(r) != mem.Foreign {
		return nil
	}
	return m.foreign(r)
}

// foreign is Destination of memory that is not Go's.
func (m *Manager) foreign(r mem.Range) error {
	if !writable(r, m.page) {
		return fmt.Errorf("%d bytes at %#x: %w; give a destination that this process may write", r.Bytes, r.Addr(), ErrReadOnly)
	}
	return nil
}

// each calls f for the regions that share bytes with [lo, hi), each at least once, until f returns false.
func (x *index) each(lo, hi uint64, f func(*Region) bool) {
	if l := x.top.Load(); l != nil && hi > lo && (hi-1)>>addrBits == 0 {
		l.each(lo, hi-1, topShift, f)
	}
}

func (l *level) each(lo, last uint64, shift uint, f func(*Region) bool) bool {
	base := lo >> (shift + levelBits) << (shift + levelBits)
	for i := lo >> shift % levelSize; ; i++ {
		from := base + i<<shift
		if from > last || i == levelSize {
			return true
		}
		for e := l[i].list.Load(); e != nil; e = e.next {
			if !f(e.r) {
				return false
			}
		}
		if c := l[i].child.Load(); c != nil && !c.each(max(lo, from), min(last, from+1<<shift-1), shift-levelBits, f) {
			return false
		}
	}
}

// insert enters r; it reports whether r's addresses are such as the index knows.
func (x *index) insert(r *Region) bool {
	if r.hi <= r.lo || (r.hi-1)>>addrBits != 0 {
		return false
	}
	r.self.r = r
	if x.top.Load() == nil {
		x.top.Store(new(level))
	}
	x.top.Load().walk(r, r.lo, r.hi-1, topShift, true)
	return true
}

// remove takes r out.
func (x *index) remove(r *Region) { x.top.Load().walk(r, r.lo, r.hi-1, topShift, false) }

// walk visits the slots that hold r, for [lo, last] of it.
func (l *level) walk(r *Region, lo, last uint64, shift uint, insert bool) {
	base := lo >> (shift + levelBits) << (shift + levelBits)
	for i := lo >> shift % levelSize; i < levelSize; i++ {
		from := base + i<<shift
		if from > last {
			return
		}
		end := from + 1<<shift - 1
		s := &l[i]
		switch whole := lo <= from && end <= last; {
		case !whole && shift > pageBits:
			c := s.child.Load()
			if c == nil {
				c = new(level)
				s.child.Store(c)
			}
			c.walk(r, max(lo, from), min(last, end), shift-levelBits, insert)
		case !insert:
			s.list.Store(without(s.list.Load(), r))
		case s.list.Load() == nil:
			s.list.Store(&r.self)
		default:
			s.list.Store(&entry{r, s.list.Load()})
		}
	}
}

// without returns list less r; readers may be in the old one.
func without(list *entry, r *Region) *entry {
	switch {
	case list == nil:
		return nil
	case list.r == r:
		return list.next
	}
	rest := without(list.next, r)
	if rest == list.next {
		return list
	}
	if rest == nil && list.r.self.next == nil {
		return &list.r.self
	}
	return &entry{list.r, rest}
}
