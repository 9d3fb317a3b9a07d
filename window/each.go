package window

import (
	"fmt"
	"unsafe"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	pgsync "gopgas/sync"
	"gopgas/transport"
)

// ScatterAccumulate combines element i of src into the one at the target and displacement that at(i) returns, for all i and for
// as many targets as there are, each atomically and in any order. It completes like an Accumulate. Through a NIC many elements
// travel together: up to 250 of 8 bytes in a message to each owner, or 64 NIC atomics in a crossing. at is called more than once
// for each i and always answers the same; as that of Scatter it makes no call that waits. (Tables that many ranks update at random places: histograms, GUPS.)
func ScatterAccumulate[T pgsync.Number](w *Window[T], at func(i int) (target, disp int), src []T, op Op) error {
	if op < atom.CompareSwap && unsafe.Sizeof(*new(T)) >= 4 && accumulates[T](op) && cells(w, at, len(src)) {
		var b [batch]*T
		for from := 0; from < len(src); from += batch {
			part := src[from:min(from+batch, len(src))]
			for i, p := range ahead(w, &b, at, from, len(part)) {
				accumulate(unsafe.Slice(p, 1), part[i:i+1], op)
			}
		}
		return nil
	}
	return w.c.accumulateAt("scatter-accumulate", at, mem.Of(src), mem.Range{}, op)
}

// GatherAccumulate is ScatterAccumulate that also stores what the elements were in old, which is as long as src and may be src
// itself. It returns when all old values are there. Where several i name one element, each gets another value.
func GatherAccumulate[T pgsync.Number](w *Window[T], at func(i int) (target, disp int), src, old []T, op Op) error {
	const name = "gather-accumulate"
	if len(old) != len(src) {
		return transport.NewOpError(name, -1, fmt.Errorf("%w: %d elements, and room for %d old ones", ErrRange, len(src), len(old)))
	}
	if op == atom.Sum && unsafe.Sizeof(*new(T)) >= 4 && cells(w, at, len(src)) {
		var b [batch]*T
		for from := 0; from < len(src); from += batch {
			to := min(from+batch, len(src))
			for i, p := range ahead(w, &b, at, from, to-from) {
				old[from+i] = addOld(p, src[from+i])
			}
		}
		return nil
	}
	return w.c.accumulateAt(name, at, mem.Of(src), mem.Of(old), op)
}

// batch is how many mapped elements are asked for before the first of them is updated. A core brings some tens of lines at a time.
const batch = 64

// cells reports whether all elements are mapped and the window's atomics are the CPU's, and there are any.
func cells[T any](w *Window[T], at func(i int) (target, disp int), count int) bool {
	if !w.c.cpu || count == 0 {
		return false
	}
	for i := range count {
		target, disp := at(i)
		if uint(target) >= uint(len(w.parts)) {
			return false
		}
		if _, n := w.parts[target].direct(); uint(disp) >= n {
			return false
		}
	}
	return true
}

// ahead returns the n elements from the first on, and has them brought into the cache. A processor begins no more than some hundreds
// of instructions after one that waits for memory, and with an atomic one nothing that needs a register from memory: updates of words
// that are in no cache would wait one after the other.
func ahead[T any](w *Window[T], b *[batch]*T, at func(i int) (target, disp int), first, n int) []*T {
	for i := range b[:n] {
		target, disp := at(first + i)
		b[i] = &w.parts[target].s[disp]
		mem.Prefetch(unsafe.Pointer(b[i]))
	}
	return b[:n]
}

// accumulateAt asks the engine, for elements of which at says where they are.
func (w *core) accumulateAt(name string, at func(i int) (target, disp int), src, old mem.Range, op Op) error {
	if err := w.accumulable(op); err != nil {
		return transport.NewOpError(name, -1, err)
	}
	src, old = w.near(src), w.near(old)
	size := w.elem.Bytes
	count := src.Bytes / size
	if count == 0 {
		return w.usable(name)
	}
	for i := range count {
		target, disp := at(i)
		if err := w.check(name, target, disp, 1); err != nil {
			return err
		}
	}
	if err := w.goneAt(name, count, at); err != nil {
		return err
	}
	if w.race != nil {
		return w.checkedEach(name, op, count, at, src, old)
	}
	return w.e.AccumulateAt(name, op, w.elem, count, func(i int) (*proto.Remote, int) {
		target, disp := at(i)
		return &w.remotes[target], disp * size
	}, src, old)
}

// checkedEach makes them one after the other.
func (w *core) checkedEach(name string, op Op, count int, at func(i int) (target, disp int), src, old mem.Range) error {
	size := w.elem.Bytes
	for i := range count {
		target, disp := at(i)
		done, was := racecheck.ByFlush, mem.Range{}
		if old.Bytes != 0 {
			done, was = racecheck.AtReturn, old.Slice(i*size, size)
		}
		if err := w.checkedUpdate(name, op, target, disp, src.Slice(i*size, size), was, done); err != nil {
			return err
		}
	}
	return nil
}
