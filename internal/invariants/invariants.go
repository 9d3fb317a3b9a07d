package invariants

import (
	"fmt"
	"math/rand/v2"
)

// spoil is what Mangle writes: as a length absurd, as a float64 huge and negative, and not a valid address.
const spoil = 0xdb

// Check panics with the formatted text when Enabled and cond is false. Otherwise it does nothing and does not
// allocate.
func Check(cond bool, format string, args ...any) {
	if Enabled && !cond {
		fail(format, args)
	}
}

func fail(format string, args []any) {
	panic("bug: " + fmt.Sprintf(format, args...))
}

// Sometimes reports true in about percent of 100 calls when Enabled, and false otherwise. At 100 it is always
// true when Enabled, at 0 never.
//
//gcassert:inline
func Sometimes(percent int) bool {
	if Enabled {
		return rand.IntN(100) < percent
	}
	return false
}

// Mangle overwrites b when Enabled. Call it on memory that its user has given back.
func Mangle(b []byte) {
	if !Enabled || len(b) == 0 {
		return
	}
	b[0] = spoil
	for n := 1; n < len(b); { // by copies, which is quicker than by bytes, and of what is in the nearest cache
		n += copy(b[n:], b[:min(n, 4096)])
	}
}
