package atom

import (
	"reflect"

	"gopgas/internal/mem"
)

// Do performs op on the element at byte off of m, which all ranks that map it see as one change, and returns its old bits.
func Do(op Op, t Elem, m mem.Range, off int, x, y uint64) uint64 {
	switch t.Bytes {
	case 8:
		w := m.Word64(off)
		switch {
		case op == Load:
			return w.Load()
		case op == Sum && t.Kind != reflect.Float64:
			return w.Add(x) - x
		}
		for {
			old := w.Load()
			if w.CompareAndSwap(old, Combine(op, t.Kind, old, x, y)) {
				return old
			}
		}
	case 4:
		w := m.Word32(off)
		if op == Load {
			return uint64(w.Load())
		}
		for {
			old := w.Load()
			if w.CompareAndSwap(old, uint32(Combine(op, t.Kind, uint64(old), x, y))) {
				return uint64(old)
			}
		}
	default:
		w, shift := m.Around32(off)
		mask := uint32(1)<<(8*t.Bytes) - 1
		for {
			word := w.Load()
			old := word >> shift & mask
			next := word&^(mask<<shift) | uint32(Combine(op, t.Kind, uint64(old), x, y))&mask<<shift
			if w.CompareAndSwap(word, next) {
				return uint64(old)
			}
		}
	}
}

// Accumulate combines src into dst element by element, each as Do would.
func Accumulate(op Op, t Elem, dst, src mem.Range) {
	for off := 0; off < src.Bytes; off += t.Bytes {
		Do(op, t, dst, off, src.Slice(off, t.Bytes).Bits(), 0)
	}
}

// FetchAccumulate is Accumulate, and stores in old what dst was; old may be src itself.
func FetchAccumulate(op Op, t Elem, dst, src, old mem.Range) {
	for off := 0; off < src.Bytes; off += t.Bytes {
		old.Slice(off, t.Bytes).SetBits(Do(op, t, dst, off, src.Slice(off, t.Bytes).Bits(), 0))
	}
}
