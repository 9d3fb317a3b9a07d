package sched

import (
	"runtime"
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

// asleep is how many goroutines of the process sleep in futexWait.
var asleep atomic.Int32

// futexWait sleeps while *word == val, until a wake or for limit. It may return early. Errors mean that there
// was nothing to wait for, which the caller finds by looking again.
//
// Who sleeps keeps its right to run Go code until the runtime's monitor takes it. That is soonest over, and does no harm as long as others have one. Where
// all are kept nobody reads sockets until the monitor looks, which is every 10 ms where sleeps are shorter than that. So who would keep the last hands it on.
func futexWait(word *atomic.Uint32, val uint32, limit time.Duration) {
	ts := unix.NsecToTimespec(int64(limit))
	if int(count(1)) < runtime.GOMAXPROCS(0) {
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(val), uintptr(unsafe.Pointer(&ts)), 0, 0)
	} else {
		futexWaitAside(word, val, &ts)
	}
	count(-1)
}

// count adds to who is asleep. To the race detector an atomic operation orders what two goroutines do before and after it; that both sleep orders nothing, and
// would hide what is to be reported.
func count(n int32) int32 {
	ignoreOrder()
	now := asleep.Add(n)
	heedOrder()
	return now
}

// futexWaitAside is the sleep of who hands its right on.
//
//go:nosplit
//go:norace
func futexWaitAside(word *atomic.Uint32, val uint32, limit *unix.Timespec) {
	entersyscallblock()
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(val), uintptr(unsafe.Pointer(limit)), 0, 0)
	exitsyscall()
}

// futexWake wakes all who wait on word.
func futexWake(word *atomic.Uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake, 1<<30, 0, 0, 0)
}

// yieldProcessor lets another process run. A raw call: the runtime need not hand this goroutine's P on.
func yieldProcessor() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// These are the runtime's, which keeps their names and types for those who link to them (go.dev/issue/67401).

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
