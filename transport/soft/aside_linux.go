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

// leave has the calling thread, which is one goroutine's alone, run on another processor if it is on this one and may. Afterwards it may run wherever it
// might before.
func leave(cpu int) {
	if thisCPU() != cpu {
		return
	}
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil || may.Count() < 2 {
		return
	}
	others := may
	others.Clear(cpu)
	if unix.SchedSetaffinity(0, &others) == nil { // it is moved before this returns
		_ = unix.SchedSetaffinity(0, &may)
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
