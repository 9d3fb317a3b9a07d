package mem

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Range is Bytes bytes of this process's memory beginning at Base. The zero Range is empty.
type Range struct {
	Base  unsafe.Pointer
	Bytes int
}

// Of returns the memory of s's elements. It aliases s.
func Of[T any](s []T) Range {
	var zero T
	return Range{Base: unsafe.Pointer(unsafe.SliceData(s)), Bytes: len(s) * int(unsafe.Sizeof(zero))}
}

// One returns the memory of the value that p points to. It aliases that.
func One[T any](p *T) Range { return Range{Base: unsafe.Pointer(p), Bytes: SizeOf[T]()} }

// SizeOf returns the size of T in bytes.
func SizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// At returns the range of n bytes at address addr, which must stay mapped as long as the range is used. It is
// meant for memory that is not Go's: a mapping, or what a C library handed out.
func At(addr uintptr, n int) Range {
	// The round trip through a pointer to addr keeps vet from taking foreign memory for a Go object.
	return Range{Base: *(*unsafe.Pointer)(unsafe.Pointer(&addr)), Bytes: n}
}

// Addr returns the address of the first byte as a number, for the wire and for a NIC.
func (r Range) Addr() uint64 { return uint64(uintptr(r.Base)) }

// Data returns the bytes of r as a slice that aliases them.
func (r Range) Data() []byte { return unsafe.Slice((*byte)(r.Base), r.Bytes) }

// Slice returns the n bytes of r from off on. It panics if they do not lie in r.
func (r Range) Slice(off, n int) Range {
	if off < 0 || n < 0 || off > r.Bytes || n > r.Bytes-off {
		panic(fmt.Sprintf("mem: [%d:+%d] of a range of %d bytes", off, n, r.Bytes))
	}
	if n == 0 {
		return Range{Base: r.Base} // a pointer just past an object would keep its neighbour alive
	}
	return Range{Base: unsafe.Add(r.Base, off), Bytes: n}
}

// Contains reports whether o lies in r.
func (r Range) Contains(o Range) bool {
	return o.Addr() >= r.Addr() && o.Addr()+uint64(o.Bytes) <= r.Addr()+uint64(r.Bytes)
}

// Slice returns the memory of r as elements of type T; a rest shorter than one element is left out.
func Slice[T any](r Range) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if size == 0 || r.Bytes < size {
		return nil
	}
	return unsafe.Slice((*T)(r.Base), r.Bytes/size)
}

// Word64 returns the 8-byte word at byte off of r for atomic use.
func (r Range) Word64(off int) *atomic.Uint64 {
	return (*atomic.Uint64)(r.word(off, 8))
}

// Word32 returns the 4-byte word at byte off of r for atomic use.
func (r Range) Word32(off int) *atomic.Uint32 {
	return (*atomic.Uint32)(r.word(off, 4))
}

func (r Range) word(off, size int) unsafe.Pointer {
	p := unsafe.Add(r.Base, off)
	if off < 0 || off > r.Bytes-size || uintptr(p)&uintptr(size-1) != 0 {
		panic(fmt.Sprintf("mem: atomic word of %d bytes at offset %d of a range of %d", size, off, r.Bytes))
	}
	return p
}

// Around32 returns the aligned 4-byte word that holds the byte or half-word at off, and its shift in that word.
// The word may reach beyond r, into the rest of r's page.
func (r Range) Around32(off int) (w *atomic.Uint32, shift uint) {
	p := unsafe.Add(r.Base, off)
	if off < 0 || off >= r.Bytes {
		panic(fmt.Sprintf("mem: atomic at offset %d of a range of %d", off, r.Bytes))
	}
	in := uintptr(p) & 3
	return (*atomic.Uint32)(unsafe.Add(p, -int(in))), 8 * uint(in)
}

// Word64Of returns p's word for atomic use; T must be 8 bytes wide.
func Word64Of[T any](p *T) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(p)) }

// Word32Of returns p's word for atomic use; T must be 4 bytes wide.
func Word32Of[T any](p *T) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(p)) }

// Bits returns the value of a range of 1, 2, 4 or 8 bytes, in the machine's byte order, as the low bits.
func (r Range) Bits() uint64 {
	switch r.Bytes {
	case 1:
		return uint64(*(*uint8)(r.Base))
	case 2:
		return uint64(*(*uint16)(r.Base))
	case 4:
		return uint64(*(*uint32)(r.Base))
	default:
		return *(*uint64)(r.Base)
	}
}

// SetBits is the inverse of Bits.
func (r Range) SetBits(v uint64) {
	switch r.Bytes {
	case 1:
		*(*uint8)(r.Base) = uint8(v)
	case 2:
		*(*uint16)(r.Base) = uint16(v)
	case 4:
		*(*uint32)(r.Base) = uint32(v)
	default:
		*(*uint64)(r.Base) = v
	}
}
