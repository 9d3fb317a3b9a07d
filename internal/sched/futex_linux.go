package sched

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Futex operations of linux/futex.h, without the private flag: the word may be shared between processes.
const (
	futexOpWait = 0
	futexOpWake = 1
)

// futexWait sleeps while *word == val, until a wake or for limit. It may return early. Errors mean that there
// was nothing to wait for, which the caller finds by looking again.
func futexWait(word *atomic.Uint32, val uint32, limit time.Duration) {
	ts := unix.NsecToTimespec(int64(limit))
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(val),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// futexWake wakes all who wait on word.
func futexWake(word *atomic.Uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake, 1<<30, 0, 0, 0)
}

// yieldProcessor lets another process run. A raw call: the runtime need not hand this goroutine's P on.
func yieldProcessor() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
