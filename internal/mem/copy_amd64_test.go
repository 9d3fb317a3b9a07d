//go:build !purego && !race && !msan && !asan

package mem

import (
	"testing"
	"unsafe"
)

// ownWays returns the ways in assembly that this processor has, for n bytes; they do not mind where others are faster.
func ownWays(n int) []namedWay {
	by := func(f func(dst, src unsafe.Pointer, n int)) func(dst, src []byte) int {
		return func(dst, src []byte) int {
			f(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), len(src))
			return len(src)
		}
	}
	var out []namedWay
	if n >= leastString { // any processor has this instruction
		out = append(out, namedWay{"string", by(copyString)})
	}
	if n >= leastWide && here().wide {
		out = append(out, namedWay{"wide", by(copyWide)})
	}
	return out
}

// What the functions in assembly ask for.
const leastString, leastWide = 80, 192

func TestEveryWayEveryShift(t *testing.T) {
	room := noise(4000)
	have, want := make([]byte, len(room)), make([]byte, len(room))
	for n := leastString; n < 900; n += 1 + n/100 {
		for _, w := range ownWays(n) {
			for shift := range 64 {
				agrees(t, w.move, room, have, want, shift, 2000+shift*5%64, n)
				agrees(t, w.move, room, have, want, 2000+shift*5%64, shift, n)
			}
		}
	}
}

func TestEveryWayOfLong(t *testing.T) {
	for _, n := range []int{4096, 4097, 65536 + 3, piece, piece + fromString - 1} {
		room := noise(2*n + 256)
		have, want := make([]byte, len(room)), make([]byte, len(room))
		for _, w := range ownWays(n) {
			for _, shift := range []int{0, 1, 8, 33, 63} {
				agrees(t, w.move, room, have, want, shift, n+100, n)
				agrees(t, w.move, room, have, want, n+100, shift, n)
			}
		}
	}
}
