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
	may := func() (set unix.CPUSet) {
		require.NoError(t, unix.SchedGetaffinity(0, &set))
		return set
	}
	all := may()
	if all.Count() > 1 {
		left := 0
		for range 20 {
			at := thisCPU()
			if leave(at); thisCPU() != at {
				left++
			}
		}
		require.Greater(t, left, 10, "it may go back, but not at once")
	}
	require.Equal(t, all, may())
	leave(-1)
	require.Equal(t, all, may())

	var only unix.CPUSet
	only.Set(thisCPU())
	require.NoError(t, unix.SchedSetaffinity(0, &only))
	at := thisCPU()
	leave(at)
	leave(at + 1)
	require.Equal(t, at, thisCPU())
	require.Equal(t, only, may())
}
