package window

import (
	"gopgas/internal/mem"
)

// View is a member's part as memory of this process: its methods inline to plain instructions. An index out of
// range panics as a slice's does, and so does any index after the window was freed.
type View[T any] struct{ p *part[T] }

// View returns target's part; ok is false where it is not mapped here, where the window's atomics are not the CPU's,
// and while operations are being counted or races looked for.
func (w *Window[T]) View(target int) (v View[T], ok bool) {
	if !w.c.cpu || uint(target) >= uint(len(w.parts)) || len(w.parts[target].s) == 0 {
		return View[T]{new(part[T])}, false
	}
	return View[T]{&w.parts[target]}, true
}

// fullFence stands between the generic methods and package mem: the compiler offers a program the body of mem's
// function only if some function of this package, not a generic one, has inlined it.
func fullFence() { mem.FullFence() }

func storeFence() { mem.StoreFence() }

// Len returns the number of elements.
func (v View[T]) Len() int { return len(v.p.s) }

// Order keeps earlier stores through views, and puts, before later ones, for all observers. Together with Store it
// is what a signal is made of. It costs nothing on amd64.
func (v View[T]) Order() { storeFence() }

// Flush makes earlier stores visible before anything that this goroutine does later, loads included.
func (v View[T]) Flush() { fullFence() }

// Atomic is a View for integers of 4 or 8 bytes whose methods are single atomic instructions.
type Atomic[T Bits] struct{ p *part[T] }

// Atomics returns the atomic operations on a view.
func Atomics[T Bits](v View[T]) Atomic[T] { return Atomic[T](v) }

// Load returns element i; it is seen no older than what ordered this rank after its store.
func (a Atomic[T]) Load(i int) T { return load(&a.p.s[i]) }

// Store sets element i, sequentially consistent: no later load of this goroutine comes before it.
func (a Atomic[T]) Store(i int, v T) { store(&a.p.s[i], v) }

// FetchAdd adds d to element i and returns the old value.
func (a Atomic[T]) FetchAdd(i int, d T) T { return fetchAdd(&a.p.s[i], d) }

// Swap sets element i and returns the old value.
func (a Atomic[T]) Swap(i int, v T) T { return swap(&a.p.s[i], v) }

// CompareSwap sets element i to v if it is old, and reports whether it was.
func (a Atomic[T]) CompareSwap(i int, old, v T) bool { return compareSwapBits(&a.p.s[i], old, v) }

// FetchXor combines element i with v by exclusive or and returns the old value.
func (a Atomic[T]) FetchXor(i int, v T) T { return fetchXor(&a.p.s[i], v) }
