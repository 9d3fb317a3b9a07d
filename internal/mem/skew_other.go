//go:build !amd64 || purego || race || msan || asan

package mem

// Skewed reports whether dst lies to src in such a way that a long copy by a kernel takes many times as long as others.
func Skewed(dst, src uintptr) bool { return false }
