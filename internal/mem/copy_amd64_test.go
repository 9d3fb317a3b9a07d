//go:build !purego && !race && !msan && !asan

package mem

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
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
	if n > 0 {
		out = append(out, namedWay{"in pieces", func(dst, src []byte) int { copyThrough(dst, src); return len(src) }})
	}
	if n >= leastPast && here().past {
		out = append(out, namedWay{"past", by(copyPast)},
			namedWay{"as used", func(dst, src []byte) int { copyAsUsed(dst[:len(src)], src); return len(src) }})
	}
	if n >= leastString { // any processor has this instruction
		out = append(out, namedWay{"string", by(copyString)})
	}
	if n >= leastWide && here().wide {
		out = append(out, namedWay{"wide", by(copyWide)})
	}
	return out
}

// TestLastCache: what the processor says of its last cache is what the system says, or nothing.
func TestLastCache(t *testing.T) {
	bytes, sharers := lastCache()
	require.Positive(t, sharers)
	said, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/index3/size")
	if err != nil || bytes == 0 {
		t.Skip("the system, or the processor, tells of no third cache")
	}
	require.Equal(t, strings.TrimSpace(string(said)), strconv.Itoa(bytes>>10)+"K")
}

// What the functions in assembly ask for.
const leastString, leastWide, leastPast = 80, 192, 256

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

// TestCollectorNeedNotWait stops the world while a long copy is under way, until it finds one not done. It runs again by itself where the
// collector sends no signals, which find the moment between two pieces now and then: there a copy is stopped at the beginning of a function, or
// never, however long this process or one of its threads had to wait for a core.
func TestCollectorNeedNotWait(t *testing.T) {
	const noSignals = "asyncpreemptoff=1"
	if !strings.Contains(os.Getenv("GODEBUG"), noSignals) {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), "GODEBUG="+noSignals)
		out, err := again.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	const n, tries = 64 << 20, 1000
	src, dst := make([]uint32, n/4), make([]uint32, n/4)
	first, last := &dst[0], &dst[len(dst)-1]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for try := range uint32(tries) {
		src[0], src[len(src)-1] = try+1, try+1
		done := make(chan bool)
		go func() {
			copyPieces(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
			close(done)
		}()
		for atomic.LoadUint32(first) == try {
			runtime.Gosched()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m) // stops the world
		amid := atomic.LoadUint32(last) == try
		<-done
		require.Equal(t, try+1, *last)
		if amid {
			return
		}
	}
	require.Fail(t, "not one of the copies was stopped before its end", "of %d", tries)
}
