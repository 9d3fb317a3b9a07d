package sched

import "golang.org/x/sys/unix"

// threadID names the calling thread.
func threadID() int32 { return int32(unix.Gettid()) }

// setSlice gives a thread of this process a slice in nanoseconds and returns the one it had; 0, there and here, means
// the kernel's. Threads that a program has put under another policy than the usual one keep what they have. Threads
// that it starts do not inherit the slice.
func setSlice(thread int32, nanos uint64) (before uint64) {
	a, err := unix.SchedGetAttr(int(thread), 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL {
		return 0
	}
	before = a.Runtime
	a.Runtime = nanos
	a.Flags = unix.SCHED_FLAG_RESET_ON_FORK  // which stays: to take it back needs rights
	_ = unix.SchedSetAttr(int(thread), a, 0) // refused: then it waits for its turn as before
	return before
}
