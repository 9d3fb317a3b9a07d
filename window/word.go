package window

import (
	"sync/atomic"
	"unsafe"
)

// Bits are the types with every atomic operation.
type Bits interface {
	~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64 | ~uintptr
}

// Word are the types with add, swap and compare-and-swap: Bits and floating-point numbers.
type Word interface {
	Bits | ~float32 | ~float64
}

// The functions below are the typed edge to sync/atomic. The size of T is a constant in each instance, so that one
// case remains. A T of another size than 4 or 8 bytes is accessed plainly, by load and store only.

func p64[T any](p *T) *uint64 { return (*uint64)(unsafe.Pointer(p)) }
func p32[T any](p *T) *uint32 { return (*uint32)(unsafe.Pointer(p)) }

func load[T any](p *T) (v T) {
	switch unsafe.Sizeof(v) {
	case 8:
		u := atomic.LoadUint64(p64(p))
		return *(*T)(unsafe.Pointer(&u))
	case 4:
		u := atomic.LoadUint32(p32(p))
		return *(*T)(unsafe.Pointer(&u))
	}
	return *p
}

func store[T any](p *T, v T) {
	switch unsafe.Sizeof(v) {
	case 8:
		atomic.StoreUint64(p64(p), *p64(&v))
	case 4:
		atomic.StoreUint32(p32(p), *p32(&v))
	default:
		*p = v
	}
}

func swap[T Word](p *T, v T) T {
	if unsafe.Sizeof(v) == 8 {
		u := atomic.SwapUint64(p64(p), *p64(&v))
		return *(*T)(unsafe.Pointer(&u))
	}
	u := atomic.SwapUint32(p32(p), *p32(&v))
	return *(*T)(unsafe.Pointer(&u))
}

func compareSwap[T Word](p *T, old, v T) bool {
	if unsafe.Sizeof(v) == 8 {
		return atomic.CompareAndSwapUint64(p64(p), *p64(&old), *p64(&v))
	}
	return atomic.CompareAndSwapUint32(p32(p), *p32(&old), *p32(&v))
}

// compareSwapBits is compareSwap for integers, in few enough steps to be inlined in a method that is inlined.
func compareSwapBits[T Bits](p *T, old, v T) bool {
	if unsafe.Sizeof(v) == 8 {
		return atomic.CompareAndSwapUint64(p64(p), uint64(old), uint64(v))
	}
	return atomic.CompareAndSwapUint32(p32(p), uint32(old), uint32(v))
}

func fetchAdd[T Bits](p *T, d T) T {
	if unsafe.Sizeof(d) == 8 {
		return T(atomic.AddUint64(p64(p), uint64(d))) - d
	}
	return T(atomic.AddUint32(p32(p), uint32(d))) - d
}

func fetchAnd[T Bits](p *T, v T) T {
	if unsafe.Sizeof(v) == 8 {
		return T(atomic.AndUint64(p64(p), uint64(v)))
	}
	return T(atomic.AndUint32(p32(p), uint32(v)))
}

func fetchOr[T Bits](p *T, v T) T {
	if unsafe.Sizeof(v) == 8 {
		return T(atomic.OrUint64(p64(p), uint64(v)))
	}
	return T(atomic.OrUint32(p32(p), uint32(v)))
}

// fetchXor has the conversions of p64 and p32 in it: in as many steps fewer it is inlined in a method that is inlined.
func fetchXor[T Bits](p *T, v T) T {
	if unsafe.Sizeof(v) == 8 {
		return T(xorOld64((*uint64)(unsafe.Pointer(p)), uint64(v)))
	}
	return T(xorOld32((*uint32)(unsafe.Pointer(p)), uint32(v)))
}

func addOld64(p *uint64, d uint64) uint64 { return atomic.AddUint64(p, d) - d }
func addOld32(p *uint32, d uint32) uint32 { return atomic.AddUint32(p, d) - d }

// xorOld64 and xorOld32 are loops: sync/atomic has no exclusive or. They are not generic, so that there is nothing in them but the loop:
// how many updates of words in no cache overlap depends on how few instructions each takes.
func xorOld64(p *uint64, v uint64) uint64 {
	for {
		old := atomic.LoadUint64(p)
		if atomic.CompareAndSwapUint64(p, old, old^v) {
			return old
		}
	}
}

func xorOld32(p *uint32, v uint32) uint32 {
	for {
		old := atomic.LoadUint32(p)
		if atomic.CompareAndSwapUint32(p, old, old^v) {
			return old
		}
	}
}
