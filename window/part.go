package window

import (
	"sync/atomic"
	"unsafe"
)

// part is a member's memory if this process maps it. Calls use it directly while its owner lives, views until the window is freed: it stays
// where it is, with what its owner has left there, so nothing is taken away from under a copy.
type part[T any] struct {
	usable atomic.Uintptr // how many elements calls use directly; 0: ask the engine (W1). It stands first: that saves calls an instruction
	s      []T            // empty: not mapped, or freed
}

// open lets calls use s.
func (p *part[T]) open(s []T) {
	p.s = s
	p.usable.Store(uintptr(len(s)))
}

// direct returns the part and how many elements of it the present call may use directly, which it asks once: the owner may be found gone
// meanwhile. It is an atomic load, by which calls and the goroutine that tells of deaths stay out of each other's way, and on amd64 it is a
// load like any other.
func (p *part[T]) direct() (*part[T], uint) { return p, uint(p.usable.Load()) }

// at is element i, which direct has counted in.
func (p *part[T]) at(i int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(p.s)), uintptr(i)*unsafe.Sizeof(*new(T))))
}

// shut ends all use (W2).
func (p *part[T]) shut() {
	p.usable.Store(0)
	p.s = nil
}

// lose makes calls ask the engine where a member is gone, and flushes where any is. The goroutine that tells of deaths calls it; it touches
// words that calls load atomically, and nothing else of the window that changes.
func (w *Window[T]) lose() {
	for m := range w.parts {
		if w.c.gone("", m) != nil {
			w.parts[m].usable.Store(0)
			w.c.direct.Store(0)
		}
	}
}

// gone returns the error of an operation on target's part when its owner is gone. To an empty part nothing can be done.
func (w *core) gone(op string, target int) error {
	if r := &w.remotes[target]; r.Bytes != 0 {
		return w.e.Gone(op, r.Rank)
	}
	return nil
}

// goneAny is gone for any part; of several owners that are gone it names the one that was lost first.
func (w *core) goneAny(op string) error {
	if !w.e.Peers.AnyGone() {
		return nil
	}
	first := int(w.e.Peers.First()) - 1
	var found error
	for m := range w.remotes {
		err := w.gone(op, m)
		if w.remotes[m].Rank == first && err != nil {
			return err
		}
		if found == nil {
			found = err
		}
	}
	return found
}
