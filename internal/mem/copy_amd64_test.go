//go:build !purego && !race && !msan && !asan

package mem

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
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

// TestCollectorNeedNotWait stops the world while a long copy is under way, and finds it not done. That there are pieces is not enough:
// a signal finds the moment between two of them once in ten times.
func TestCollectorNeedNotWait(t *testing.T) {
	const n, tries = 64 << 20, 20
	src, dst := make([]uint32, n/4), make([]uint32, n/4)
	first, last := &dst[0], &dst[len(dst)-1]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	amid, begun := 0, 0
	for try := uint32(0); begun < tries; try++ {
		src[0], src[len(src)-1] = try+1, try+1
		done := make(chan bool)
		go func() {
			copyPieces(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
			close(done)
		}()
		for atomic.LoadUint32(first) == try {
			runtime.Gosched()
		}
		if atomic.LoadUint32(last) == try { // not where another process had this core all the time
			begun++
			var m runtime.MemStats
			runtime.ReadMemStats(&m) // stops the world
			if atomic.LoadUint32(last) == try {
				amid++
			}
		}
		<-done
		require.Equal(t, try+1, *last)
	}
	require.Greater(t, amid, tries/3, "times of %d", tries)
}
