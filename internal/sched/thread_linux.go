package sched

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// claimThread binds the goroutine to its thread and asks the kernel to let that one's timers end within a nanosecond of
// their time instead of the usual 50 us (prctl(2), PR_SET_TIMERSLACK). The thread ends with the goroutine's function,
// unless the slack can be set back.
func (s *Sched) claimThread() (release func()) {
	runtime.LockOSThread()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return runtime.UnlockOSThread
	}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) != nil {
		return runtime.UnlockOSThread
	}
	return func() {
		if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) == nil {
			runtime.UnlockOSThread() // else the runtime ends a thread whose goroutine ends while it is locked
		}
	}
}

// bind binds the calling thread, which is locked.
func (s *Sched) bind(core int) error {
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(0, &set)
}

// nap sleeps on the thread itself; a signal ends it early, which whoever naps finds by its clock.
func (s *Sched) nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
