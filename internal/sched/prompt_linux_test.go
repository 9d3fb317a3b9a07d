package sched

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ordinary runs f on a thread of its own, which ends with it and is of the policy, however the test was started.
func ordinary(t *testing.T, policy uint32, f func()) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		a, err := unix.SchedGetAttr(0, 0)
		if err == nil {
			err = unix.SchedSetAttr(0, &unix.SchedAttr{Policy: policy, Nice: a.Nice}, 0)
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	require.NoError(t, <-done)
}

// attrOf is what the kernel knows of a thread; its Runtime is the slice in nanoseconds, 0 where the kernel has none.
func attrOf(thread int) unix.SchedAttr {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil {
		return unix.SchedAttr{Policy: 99}
	}
	return *a
}

// TestPromptIsOneThreads: whoever has served last has the short slice, and nobody after Rest.
func TestPromptIsOneThreads(t *testing.T) {
	var p Prompt
	p.Rest()
	var usual, first, again, left, taken, rested uint64
	ordinary(t, unix.SCHED_NORMAL, func() {
		mine := unix.Gettid()
		usual = attrOf(mine).Runtime
		p.Serve()
		first = attrOf(mine).Runtime
		p.Serve()
		again = attrOf(mine).Runtime
		ordinary(t, unix.SCHED_NORMAL, func() {
			p.Serve()
			left, taken = attrOf(mine).Runtime, attrOf(unix.Gettid()).Runtime
			p.Rest()
			rested = attrOf(unix.Gettid()).Runtime
		})
	})
	short := min(usual, promptSlice) // nothing changes on a kernel that knows no slices
	require.Equal(t, []uint64{short, short, usual, short, usual}, []uint64{first, again, left, taken, rested})
	require.NotEqual(t, uint64(promptSlice), usual)
	require.Zero(t, testing.AllocsPerRun(10, p.Rest))
}

// TestPromptLeavesOtherPoliciesAlone: a thread that the program has given to the idle class stays there.
func TestPromptLeavesOtherPoliciesAlone(t *testing.T) {
	var p Prompt
	var a unix.SchedAttr
	ordinary(t, unix.SCHED_IDLE, func() {
		p.Serve()
		a = attrOf(unix.Gettid())
	})
	require.EqualValues(t, unix.SCHED_IDLE, a.Policy)
}
