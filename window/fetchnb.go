package window

import (
	"fmt"
	"unsafe"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// The functions below begin what their namesakes without NB do. *old gets the old value; it belongs to the library until the
// handle is done, or until a Flush or FlushLocal of the target, and is not read before. Many may be under way at once, to any
// targets, and they take place in any order. None allocates; what old points at is on the heap, so that a loop declares it once.
//
// On mapped memory they are done at once. Through a NIC the only one in flight sets out at once; the next ones go together, at
// the latest with this rank's next flush, wait, or other operation. Sums and compare-swaps of 8-byte integers are the NIC's, if
// it has them, and so are their loads. What it lacks the target's CPU does, asked by a message of which eight can be under way to one target: a call
// that finds no room waits for it. Where that must not be, since the NIC's atomics and the CPU's do not know of each other (verbs:
// swaps and bit operations on 8-byte integers), the operation is made of compare-swaps, and is over when the call returns.

// LoadNB begins a Load.
func LoadNB[T Word](w *Window[T], target, disp int, now *T) (Handle, error) {
	if p := cell(w, target, disp); p != nil && now != nil {
		*now = load(p)
		return Handle{}, nil
	}
	return w.c.atomicNB(atom.Load, target, disp, 0, 0, word(now))
}

// FetchAddNB begins a FetchAdd.
func FetchAddNB[T Word](w *Window[T], target, disp int, v T, old *T) (Handle, error) {
	if cell(w, target, disp) != nil && old != nil {
		was, err := FetchAdd(w, target, disp, v)
		*old = was
		return Handle{}, err
	}
	return w.c.atomicNB(atom.Sum, target, disp, bits(v), 0, word(old))
}

// SwapNB begins a Swap.
func SwapNB[T Word](w *Window[T], target, disp int, v T, old *T) (Handle, error) {
	if p := cell(w, target, disp); p != nil && old != nil {
		*old = swap(p, v)
		return Handle{}, nil
	}
	return w.c.atomicNB(atom.Replace, target, disp, bits(v), 0, word(old))
}

// CompareSwapNB begins a CompareSwap, of expect and v: the swap took place if and only if *old is expect then.
func CompareSwapNB[T Word](w *Window[T], target, disp int, expect, v T, old *T) (Handle, error) {
	if cell(w, target, disp) != nil && old != nil {
		was, err := CompareSwap(w, target, disp, expect, v)
		*old = was
		return Handle{}, err
	}
	return w.c.atomicNB(atom.CompareSwap, target, disp, bits(expect), bits(v), word(old))
}

// FetchAndNB begins a FetchAnd.
func FetchAndNB[T Bits](w *Window[T], target, disp int, v T, old *T) (Handle, error) {
	if p := cell(w, target, disp); p != nil && old != nil {
		*old = fetchAnd(p, v)
		return Handle{}, nil
	}
	return w.c.atomicNB(atom.And, target, disp, bits(v), 0, word(old))
}

// FetchOrNB begins a FetchOr.
func FetchOrNB[T Bits](w *Window[T], target, disp int, v T, old *T) (Handle, error) {
	if p := cell(w, target, disp); p != nil && old != nil {
		*old = fetchOr(p, v)
		return Handle{}, nil
	}
	return w.c.atomicNB(atom.Or, target, disp, bits(v), 0, word(old))
}

// FetchXorNB begins a FetchXor.
func FetchXorNB[T Bits](w *Window[T], target, disp int, v T, old *T) (Handle, error) {
	if p := cell(w, target, disp); p != nil && old != nil {
		*old = fetchXor(p, v)
		return Handle{}, nil
	}
	return w.c.atomicNB(atom.Xor, target, disp, bits(v), 0, word(old))
}

// word is the memory of *p; none if p is nil.
func word[T any](p *T) mem.Range {
	if p == nil {
		return mem.Range{}
	}
	return mem.Of(unsafe.Slice(p, 1))
}

// atomicNB asks the engine.
func (w *core) atomicNB(op atom.Op, target, disp int, x, y uint64, old mem.Range) (Handle, error) {
	if err := w.check(op.Fetch(), target, disp, 1); err != nil {
		return Handle{}, err
	}
	r := &w.remotes[target]
	if old.Bytes == 0 {
		return Handle{}, transport.NewOpError(op.Fetch(), r.Rank, fmt.Errorf("%w: the pointer for the old value is nil", ErrRange))
	}
	if err := w.gone(op.Fetch(), target); err != nil {
		return Handle{}, err
	}
	old = w.near(old)
	if w.race != nil {
		return w.checkedAtomicNB(op, target, disp, x, y, old)
	}
	return w.e.AtomicNB(op, w.elem, r, disp*w.elem.Bytes, x, y, old)
}
