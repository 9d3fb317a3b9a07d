package shm

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// peekChunk is how many bytes one call into the kernel copies. It is a raw one, by which a goroutine keeps its P: an ordinary call of more than some 20 us would lend
// that to others and wait for one behind it. A collection waits for its end, some 30 us.
const peekChunk = 256 << 10

// Peek copies from addr of the process whose memory a token describes, exposed or not, to dst. It is one copy, by process_vm_readv(2); that process takes no part, and must
// keep what is read, or the bytes are anything. The error wraps transport.ErrPeerGone if the process has ended, transport.ErrUnsupported if it cannot be read from here:
// it has another pid namespace or user, or the kernel refuses.
func (m *Mapper) Peek(of transport.Token, addr uint64, dst mem.Range) error {
	t, err := parseToken(of)
	switch {
	case err != nil:
		return fmt.Errorf("read a peer's memory: %w", err)
	case t.boot != m.id.boot, t.pidNS != m.id.pidNS, t.pidNS == 0:
		return fmt.Errorf("read memory of process %d: %w: it counts processes otherwise", t.pid, transport.ErrUnsupported)
	}
	for at := 0; at < dst.Bytes; {
		n, errno := peek(t.pid, addr+uint64(at), dst.Slice(at, min(peekChunk, dst.Bytes-at)))
		switch {
		case errno == unix.EINTR:
		case errno == unix.ESRCH:
			return fmt.Errorf("read memory of process %d: it has ended: %w", t.pid, transport.ErrPeerGone)
		case errno == unix.EPERM, errno == unix.ENOSYS:
			return fmt.Errorf("read memory of process %d: %w: %w", t.pid, transport.ErrUnsupported, errno)
		case errno != 0:
			return fmt.Errorf("read memory of process %d: %w", t.pid, errno)
		case n == 0:
			return fmt.Errorf("read memory of process %d: %w", t.pid, errShort)
		}
		at += n
	}
	return nil
}

var errShort = errors.New("the kernel copies nothing")

// peek is one call.
func peek(pid uint32, addr uint64, dst mem.Range) (int, unix.Errno) {
	here := unix.Iovec{Base: &dst.Data()[0]}
	here.SetLen(dst.Bytes)
	there := unix.RemoteIovec{Base: uintptr(addr), Len: dst.Bytes}
	n, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&here)), 1, uintptr(unsafe.Pointer(&there)), 1, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// allowPeeks lets processes of this user read this one's memory where Yama (ptrace_scope 1) would let only ancestors. Without Yama the call fails, and there is
// nothing to allow.
func allowPeeks() { _ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0) }
