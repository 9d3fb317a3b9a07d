//go:build !amd64 || purego || race || msan || asan

package mem

import "math"

// Long is more than anything has: Copy is the builtin here.
const Long = math.MaxInt

func copyLong(to, from []byte) int { return copy(to, from) }
