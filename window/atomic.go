package window

import (
	"unsafe"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	pgsync "gopgas/sync"
)

// Op is how Accumulate combines elements; the operations are those of reductions.
type Op = pgsync.Op

// cell returns the target's element if it is mapped and atomics are the CPU's, else nil.
func cell[T any](w *Window[T], target, disp int) *T {
	if w.c.cpu && uint(target) < uint(len(w.parts)) {
		if p, n := w.parts[target].direct(); uint(disp) < n {
			return p.at(disp)
		}
	}
	return nil
}

// atomic asks the engine.
func (w *core) atomic(op atom.Op, target, disp int, x, y uint64) (uint64, error) {
	if err := w.check(op.Fetch(), target, disp, 1); err != nil {
		return 0, err
	}
	if err := w.gone(op.Fetch(), target); err != nil {
		return 0, err
	}
	if w.race != nil {
		return w.checkedAtomic(op, target, disp, x, y)
	}
	return w.e.Atomic(op, w.elem, &w.remotes[target], disp*w.elem.Bytes, x, y)
}

// bits are v's bits, zero-extended.
func bits[T Word](v T) uint64 {
	if unsafe.Sizeof(v) == 8 {
		return *p64(&v)
	}
	return uint64(*p32(&v))
}

func fromBits[T Word](u uint64) T {
	if unsafe.Sizeof(*new(T)) == 8 {
		return *(*T)(unsafe.Pointer(&u))
	}
	u32 := uint32(u)
	return *(*T)(unsafe.Pointer(&u32))
}

// isFloat is a constant in each instance.
func isFloat[T Word]() bool { return T(1)/T(2) != 0 }

// Load returns target's element disp, as it is at one moment between what the window's other atomics do to it. (A Get of the element is
// no atomic: it is a race with them, and may bring half of what one of them does.) Floating-point numbers come bit by bit, -0 and NaN too.
func Load[T Word](w *Window[T], target, disp int) (T, error) {
	if p := cell(w, target, disp); p != nil {
		return load(p), nil
	}
	u, err := w.c.atomic(atom.Load, target, disp, 0, 0)
	return fromBits[T](u), err
}

// Store sets target's element disp to v, atomically as the window's other atomics see it; what was there is not asked for: that is Swap.
// It is ordered and flushed like an Accumulate: visible to all after a Flush or Fence, to later atomics of this goroutine at once. With a Flush
// of the data before it, it tells those who Load it that the data is there.
func Store[T Word](w *Window[T], target, disp int, v T) error {
	if p := cell(w, target, disp); p != nil {
		store(p, v)
		return nil
	}
	one := [1]T{v}
	return w.c.store(target, disp, mem.Of(one[:]))
}

// store asks the engine.
func (w *core) store(target, disp int, src mem.Range) error {
	const name = "store"
	if err := w.check(name, target, disp, 1); err != nil {
		return err
	}
	if err := w.gone(name, target); err != nil {
		return err
	}
	if w.race != nil {
		return w.checkedStore(name, target, disp, src)
	}
	return w.e.Store(w.elem, &w.remotes[target], disp*w.elem.Bytes, src)
}

// FetchAdd adds v to target's element disp and returns the old value. Integers wrap around. For floating-point
// numbers the sum depends on the order of the adds.
func FetchAdd[T Word](w *Window[T], target, disp int, v T) (T, error) {
	if p := cell(w, target, disp); p != nil {
		if !isFloat[T]() {
			if unsafe.Sizeof(v) == 8 {
				return fromBits[T](addOld64(p64(p), bits(v))), nil
			}
			return fromBits[T](uint64(addOld32(p32(p), uint32(bits(v))))), nil
		}
		for {
			old := load(p)
			if compareSwap(p, old, old+v) {
				return old, nil
			}
		}
	}
	u, err := w.c.atomic(atom.Sum, target, disp, bits(v), 0)
	return fromBits[T](u), err
}

// Swap sets target's element disp to v and returns the old value.
func Swap[T Word](w *Window[T], target, disp int, v T) (T, error) {
	if p := cell(w, target, disp); p != nil {
		return swap(p, v), nil
	}
	u, err := w.c.atomic(atom.Replace, target, disp, bits(v), 0)
	return fromBits[T](u), err
}

// CompareSwap sets target's element disp to v if it is old, and returns what it was: the swap took place if and
// only if that is old. Floating-point numbers are compared by their bits, so NaN equals itself and -0 is not 0.
func CompareSwap[T Word](w *Window[T], target, disp int, old, v T) (T, error) {
	if p := cell(w, target, disp); p != nil {
		for {
			if compareSwap(p, old, v) {
				return old, nil
			}
			if was := load(p); bits(was) != bits(old) {
				return was, nil
			}
		}
	}
	u, err := w.c.atomic(atom.CompareSwap, target, disp, bits(old), bits(v))
	return fromBits[T](u), err
}

// FetchAnd combines target's element disp with v by and, and returns the old value.
func FetchAnd[T Bits](w *Window[T], target, disp int, v T) (T, error) {
	if p := cell(w, target, disp); p != nil {
		return fetchAnd(p, v), nil
	}
	u, err := w.c.atomic(atom.And, target, disp, bits(v), 0)
	return fromBits[T](u), err
}

// FetchOr combines target's element disp with v by or, and returns the old value.
func FetchOr[T Bits](w *Window[T], target, disp int, v T) (T, error) {
	if p := cell(w, target, disp); p != nil {
		return fetchOr(p, v), nil
	}
	u, err := w.c.atomic(atom.Or, target, disp, bits(v), 0)
	return fromBits[T](u), err
}

// FetchXor combines target's element disp with v by exclusive or, and returns the old value.
func FetchXor[T Bits](w *Window[T], target, disp int, v T) (T, error) {
	if p := cell(w, target, disp); p != nil {
		return fetchXor(p, v), nil
	}
	u, err := w.c.atomic(atom.Xor, target, disp, bits(v), 0)
	return fromBits[T](u), err
}
