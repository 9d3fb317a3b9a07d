package soft

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The scheduler may wake an engine's thread on the processor of who has just rung for it, and who then copies, or waits for the next completion, and is
// never off it: the two take turns there for milliseconds, beside a processor that is idle but for a few threads that get up and lie down again, for whose
// sake it looks for no other work. The engine of a slowed NIC, which waits for what it holds back, so delays the copies that were to be made meanwhile. It
// leaves the processor from which long operations are posted, where it may run on another. At the machine's own speed nothing is gained by that: it moves
// bytes all the time, which are in the caches of who has posted them.

// roam is where a thread may run. The zero roam is a thread that is not to move.
type roam struct {
	all  unix.CPUSet
	some bool // there is a choice
}

// mayRoam is where the calling thread may run.
func mayRoam() (r roam) {
	r.some = unix.SchedGetaffinity(0, &r.all) == nil && r.all.Count() > 1
	return r
}

// leave has the calling thread, which stays one goroutine's, run elsewhere if it is on a processor, of which others may use it again afterwards.
func (r *roam) leave(cpu int) {
	if !r.some || thisCPU() != cpu || !r.all.IsSet(cpu) {
		return
	}
	others := r.all
	others.Clear(cpu)
	if unix.SchedSetaffinity(0, &others) == nil { // it is moved before this returns
		_ = unix.SchedSetaffinity(0, &r.all)
	}
}

// thisCPU is the processor that the caller runs on at present, negative where that is not known.
func thisCPU() int {
	cpu := uint32(0)
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); err != 0 {
		return -1
	}
	return int(cpu)
}
