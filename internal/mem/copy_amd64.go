//go:build !purego && !race && !msan && !asan

package mem

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Long is the number of bytes from which Copy may have a better way than the builtin. Detectors of races and of wild accesses see what
// the builtin does, and nothing of what is done in assembly: where they are built in there is no better way.
const Long = 512

// here is the processor that this process runs on.
func here() processor {
	// Those with AVX-VNNI are Zen 5, Alder Lake, Sapphire Rapids, and what came later. On some before, Zen 3 and 4, the string
	// instructions are slow by a factor of 20 where source and destination lie in some ways to each other (glibc's bug 30994).
	x := &cpu.X86
	return processor{wide: x.HasAVXVNNI && x.HasAVX512F, byString: x.HasAVXVNNI && x.HasERMS, past: x.HasAVX, cached: cached}
}

// copyLong is Copy without a look at the length.
func copyLong(to, from []byte) int {
	dst, src, n := unsafe.Pointer(unsafe.SliceData(to)), unsafe.Pointer(unsafe.SliceData(from)), min(len(to), len(from))
	switch here().choose(uintptr(dst), uintptr(src), n) {
	case byString:
		copyPieces(dst, src, n)
	case wide:
		copyWide(dst, src, n)
	case asUsed:
		copyAsUsed(to[:n], from[:n])
	default:
		copy(to, from)
	}
	return min(len(to), len(from))
}

// lately is what this process has copied to of late in long copies.
var lately recent

// copyAsUsed has what is copied to again and again go through the caches, and the rest past them.
func copyAsUsed(to, from []byte) {
	dst, src, n := unsafe.Pointer(unsafe.SliceData(to)), unsafe.Pointer(unsafe.SliceData(from)), len(to)
	switch {
	case lately.again(uintptr(dst), n, cached):
		copyThrough(to, from)
	case n < pastCaches && here().past:
		for ; n >= piece+fromString; n -= piece {
			copyPastPiece(dst, src)
			dst, src = unsafe.Add(dst, piece), unsafe.Add(src, piece)
		}
		copyPast(dst, src, n)
	default:
		copy(to, from)
	}
}

// copyThrough is the builtin through the caches.
func copyThrough(to, from []byte) {
	for ; len(from) > piece; to, from = to[piece:], from[piece:] {
		copy(to[:piece], from)
	}
	copy(to, from)
}

// copyPieces is copyString in pieces, none of which is short.
func copyPieces(dst, src unsafe.Pointer, n int) {
	for ; n >= piece+fromString; n -= piece {
		copyPiece(dst, src)
		dst, src = unsafe.Add(dst, piece), unsafe.Add(src, piece)
	}
	copyString(dst, src, n)
}

// copyPiece copies a piece. It is a call because the beginning of a function is where the collector can stop a goroutine for sure: its signal
// would have to come in the few nanoseconds between two pieces.
//
//go:noinline
func copyPiece(dst, src unsafe.Pointer) { copyString(dst, src, piece) }

// copyPastPiece is the same past the caches.
//
//go:noinline
func copyPastPiece(dst, src unsafe.Pointer) { copyPast(dst, src, piece) }

// copyWide copies n bytes, at least 192, that do not overlap.
//
//go:noescape
func copyWide(dst, src unsafe.Pointer, n int)

// copyPast copies n bytes, at least 256, that do not overlap.
//
//go:noescape
func copyPast(dst, src unsafe.Pointer, n int)

// copyString copies n bytes, at least 80, that do not overlap.
//
//go:noescape
func copyString(dst, src unsafe.Pointer, n int)
