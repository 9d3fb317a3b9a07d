package window

import (
	"unsafe"

	"gopgas/internal/mem"
)

// long reports whether n elements are so many bytes that copyLong may have a better way than the builtin, which is asked where it
// takes no call: what is shorter must not wait for one.
func long[T any](n int) bool { return uintptr(n)*unsafe.Sizeof(*new(T)) >= mem.Long }

// copyLong copies min(len(dst), len(src)) elements; the two may overlap.
//
//go:noinline
func copyLong[T any](dst, src []T) {
	n := min(len(dst), len(src))
	mem.Copy(mem.Of(dst[:n]).Data(), mem.Of(src[:n]).Data())
}
