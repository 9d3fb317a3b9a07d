package mem

import "unsafe"

// Origin says whose a Range is: what may be promised of it while a NIC looks at its pages.
type Origin int

// The origins.
const (
	// Unknown: it may lie on a goroutine's stack, which moves, or on more than one object. Copy it; never give it to a NIC.
	Unknown Origin = iota
	// Heap: within one object of the Go heap. The object does not move; while it is pinned its pages are not given back.
	Heap
	// Foreign: not the Go heap's: a mapping, C's memory, the program's static data. Only its owner knows how long it stays.
	Foreign
)

// String names the origin for statistics and errors.
func (o Origin) String() string { return [...]string{"unknown", "Go heap", "foreign"}[o] }

// stackReach is how far above this very frame the caller's stack may end: far more than a stack may grow to (1 GB), less
// than the distance between Go's arenas and the kernel's mappings.
const stackReach = 1 << 36

// OriginOf finds out where r lies. r must be memory that the caller may use now, as every slice is; an address without
// an object behind it is the runtime's to complain about. It allocates nothing and takes some tens of nanoseconds.
//
// It asks the runtime's own index of the heap. That is exact for heap memory: a pointer that the caller holds keeps its
// object, hence the answer. A stack cannot be told from a mapping in the same way, so what lies above this frame within the
// reach of a stack counts as Unknown: a slice on a stack that the caller holds is on his own stack, above his frame.
func OriginOf(r Range) Origin {
	if r.Bytes <= 0 || r.Base == nil {
		return Unknown
	}
	first, last := uintptr(r.Base), uintptr(r.Base)+uintptr(r.Bytes-1)
	object, _, _ := findObject(first, 0, 0)
	end := object
	if first>>3 != last>>3 { // no object begins or ends within an aligned word
		end, _, _ = findObject(last, 0, 0)
	}
	switch {
	case object != end || last < first:
		return Unknown
	case object != 0:
		return Heap
	}
	var here byte
	if frame := uintptr(unsafe.Pointer(&here)); uint64(first)-uint64(frame) < stackReach {
		return Unknown
	}
	return Foreign
}

// findObject is the runtime's: base is the object that p lies in, 0 where p is not in the heap. The runtime keeps its name
// and type for those who link to it (go.dev/issue/67401); origin_test.go tells when it no longer does.
//
//go:linkname findObject runtime.findObject
//go:noescape
func findObject(p, refBase, refOff uintptr) (base uintptr, span unsafe.Pointer, index uintptr)

// Hidden returns r in a form that does not make the compiler move its object from the stack to the heap. It is for memory
// that OriginOf has said to be no stack's. The result keeps the object, as r does.
func Hidden(r Range) Range { return Range{Base: hidden(r.Base), Bytes: r.Bytes} }

// hidden is a call for the collector's sake: inlined, its result is a number to the compiler until something is done with it, and a number
// keeps no object. A put's source that the program did not use again was freed before it had been sent, if a collection came then.
//
//go:noinline
//go:norace
func hidden(p unsafe.Pointer) unsafe.Pointer { return At(uintptr(p), 0).Base }

// Extend returns the n bytes from base on, which lie in one object.
func Extend(base *byte, n int) Range { return Range{Base: unsafe.Pointer(base), Bytes: n} }

// Around returns r widened to whole multiples of page, as far as within allows. Within contains r.
func Around(r, within Range, page int) Range {
	mask := uint64(page - 1)
	lo := max(r.Addr()&^mask, within.Addr())
	hi := min((r.Addr()+uint64(r.Bytes)+mask)&^mask, within.Addr()+uint64(within.Bytes))
	return within.Slice(int(lo-within.Addr()), int(hi-lo))
}

// Pages returns how many pages of a size r lies on.
func Pages(r Range, page int) int {
	if r.Bytes == 0 {
		return 0
	}
	size := uint64(page)
	return int((r.Addr()+uint64(r.Bytes)-1)/size - r.Addr()/size + 1)
}
