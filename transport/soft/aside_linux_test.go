package soft

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestLeave: a thread leaves the processor that it is told, may use all it might before, and stays where it is if it is on another, or has no choice.
func TestLeave(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread, whose affinity is changed, ends with the test
	r := mayRoam()
	require.Equal(t, r.all.Count() > 1, r.some)
	if r.some {
		left := 0
		for range 20 {
			at := thisCPU()
			if r.leave(at); thisCPU() != at {
				left++
			}
		}
		require.Greater(t, left, 10, "it may go back, but not at once")
	}
	require.Equal(t, r.all, mayRoam().all)
	r.leave(-1)

	var only unix.CPUSet
	only.Set(thisCPU())
	require.NoError(t, unix.SchedSetaffinity(0, &only))
	bound := mayRoam()
	require.False(t, bound.some)
	at := thisCPU()
	bound.leave(at)
	r.leave(at + 1)
	require.Equal(t, at, thisCPU())
}
