package mem

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// keeps takes a hidden range after the collector has run, and says whether its bytes are still what they were.
//
//go:noinline
func keeps(r Range, collected byte) bool {
	for _, b := range r.Data() {
		if b != collected {
			return false
		}
	}
	return true
}

// collect has what nobody refers to reused by others, and returns mark.
//
//go:noinline
func collect(mark byte) byte {
	for range 3 {
		runtime.GC()
		for n := 1 << 16; n <= 1<<20; n *= 2 {
			others := make([]byte, n)
			for i := range others {
				others[i] = ^mark
			}
			sink[0] = others
		}
	}
	sink[0] = nil
	return mark
}

// hide has a range whose program does not use it again hidden before the collector runs, as a put does before it waits.
//
//go:noinline
func hide(user Range, mark byte) bool { return keeps(Hidden(user), collect(mark)) }

// TestHiddenIsKept: the only reference to memory is what Hidden has returned, in the middle of a call's arguments and in a variable.
func TestHiddenIsKept(t *testing.T) {
	const mark = 0x5a
	fresh := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = mark
		}
		return b
	}
	for _, n := range []int{1 << 16, 1 << 18, 1 << 20} {
		require.True(t, hide(Of(fresh(n)), mark), "%d bytes, an argument", n)
		kept := Hidden(Of(fresh(n)))
		collect(mark)
		require.True(t, keeps(kept, mark), "%d bytes, a variable", n)
	}
}

// TestHiddenStaysOnTheStack is what Hidden is for.
func TestHiddenStaysOnTheStack(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var local [64]byte
		local[3] = Hidden(Of(local[:])).Data()[5]
	}))
}
