package soft

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A copy by the kernel can be an ordinary system call to the Go runtime or a raw one. When an ordinary one takes more than some
// 20 us the runtime lends the processor that it calls a P to others, and the caller waits for one when it comes back: 4 us, at
// times 50, of a put of 1 MiB that takes 70. A raw call keeps the P. So one chunk of a copy is to the runtime like as much
// computation of a goroutine; a collection waits for its end, some 100 us at most. Where there is one P alone, the
// program could not compute while bytes move, which is what the engine is for: there the call is an ordinary one.

// prepare chooses the kind of call.
func (m *mover) prepare() { m.stays = runtime.GOMAXPROCS(0) > 1 }

// copyVM is process_vm_writev(2) or, with out false, process_vm_readv. No list is empty.
func (m *mover) copyVM(out bool, pid int, here []unix.Iovec, there []unix.RemoteIovec) (int, error) {
	switch {
	case !m.stays && out:
		return unix.ProcessVMWritev(pid, here, there, 0)
	case !m.stays:
		return unix.ProcessVMReadv(pid, here, there, 0)
	}
	trap := uintptr(unix.SYS_PROCESS_VM_READV)
	if out {
		trap = unix.SYS_PROCESS_VM_WRITEV
	}
	n, _, errno := unix.RawSyscall6(trap, uintptr(pid), uintptr(unsafe.Pointer(&here[0])), uintptr(len(here)),
		uintptr(unsafe.Pointer(&there[0])), uintptr(len(there)), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
