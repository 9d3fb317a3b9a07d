package soft

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// mover moves bytes between this process and another. It belongs to one thread at a time, and keeps the lists
// that the kernel reads; what they name of this process it lets go of after each copy, since the next may be long in coming.
type mover struct {
	here  [bunchOps]unix.Iovec
	there [bunchOps]unix.RemoteIovec
	stays bool // copies in chunks are raw calls (copy_linux.go)

	between []byte // what makes a detour goes through it (detour_linux.go)
}

// list fills the local list and returns it with its bytes.
func (m *mover) list(pieces []transport.SGE) ([]unix.Iovec, int) {
	k, n := 0, 0
	for i := range pieces {
		if p := pieces[i].Mem; p.Bytes > 0 {
			m.here[k] = unix.Iovec{Base: &p.Data()[0]}
			m.here[k].SetLen(p.Bytes)
			n += p.Bytes
			k++
		}
	}
	return m.here[:k], n
}

// push copies the pieces to addr in process pid.
func (m *mover) push(pid int, addr uint64, pieces []transport.SGE) error {
	return m.move(true, pid, addr, pieces)
}

// pull copies from addr in process pid to the pieces.
func (m *mover) pull(pid int, addr uint64, pieces []transport.SGE) error {
	return m.move(false, pid, addr, pieces)
}

// move copies all of the pieces out to addr in process pid, or in from there.
func (m *mover) move(out bool, pid int, addr uint64, pieces []transport.SGE) error {
	if len(pieces) == 1 && skewed(out, pieces[0].Mem, addr) {
		return m.detour(out, pid, addr, pieces[0].Mem)
	}
	here, n := m.list(pieces)
	return m.all(out, pid, addr, here, n)
}

// all is move of the first pieces of the local list, with so many bytes.
func (m *mover) all(out bool, pid int, addr uint64, here []unix.Iovec, n int) error {
	m.there[0] = unix.RemoteIovec{Base: uintptr(addr), Len: n}
	defer clear(here)
	for {
		got, err := m.copyVM(out, pid, here, m.there[:1])
		if got == n && err == nil {
			return nil
		}
		if err = short(err); err != nil {
			return err
		}
	}
}

// pair notes what is the i-th copy of a bunch: between here and as many bytes at addr.
func (m *mover) pair(i int, here mem.Range, addr uint64) {
	m.here[i] = unix.Iovec{Base: &here.Data()[0]}
	m.here[i].SetLen(here.Bytes)
	m.there[i] = unix.RemoteIovec{Base: uintptr(addr), Len: here.Bytes}
}

// bunch makes the first n copies that pair has noted, to process pid or from it, in order, and returns how many bytes it has moved.
func (m *mover) bunch(out bool, pid, n int) int {
	defer clear(m.here[:n])
	for {
		got, err := m.copyVM(out, pid, m.here[:n], m.there[:n])
		if err == nil || short(err) != nil {
			return max(got, 0)
		}
	}
}

// collect copies several pieces of process pid, one after another, to dst: a whole message, however long, so by an ordinary call.
func (m *mover) collect(pid int, dst mem.Range, from []remotePiece) error {
	m.here[0] = unix.Iovec{Base: &dst.Data()[0]}
	m.here[0].SetLen(dst.Bytes)
	for i, p := range from {
		m.there[i] = unix.RemoteIovec{Base: uintptr(p.addr), Len: p.bytes}
	}
	defer clear(m.here[:1])
	for {
		got, err := unix.ProcessVMReadv(pid, m.here[:1], m.there[:len(from)], 0)
		if got == dst.Bytes && err == nil {
			return nil
		}
		if err = short(err); err != nil {
			return err
		}
	}
}

// short is the error of a copy that did not move everything: nil if it is to be tried again. Without an error
// of its own the kernel met memory that is not there.
func short(err error) error {
	switch {
	case err == nil:
		return unix.EFAULT
	case errors.Is(err, unix.EINTR):
		return nil
	default:
		return err
	}
}

// isGone reports whether an error of the mover says that the process has ended.
func isGone(err error) bool { return errors.Is(err, unix.ESRCH) }

// readHead copies the head of the board at addr of process pid to head and explains what stands in the way. A process that
// does not have the board any more is gone as far as the NIC is concerned.
func readHead(pid int, addr uint64, head mem.Range) error {
	var m mover
	err := m.pull(pid, addr, []transport.SGE{{Mem: head}})
	switch {
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("process %d has ended: %w", pid, transport.ErrPeerGone)
	case errors.Is(err, unix.EFAULT):
		return fmt.Errorf("process %d has closed its NIC: %w", pid, transport.ErrPeerGone)
	case errors.Is(err, unix.EPERM):
		return refusedBy(pid, err)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("process_vm_readv: %w: %w: the kernel was built without CONFIG_CROSS_MEMORY_ATTACH", transport.ErrUnsupported, err)
	case err != nil:
		return fmt.Errorf("process_vm_readv from process %d: %w", pid, err)
	}
	return nil
}

// refusedBy says why the kernel does not let this process into another.
func refusedBy(pid int, err error) error {
	const file = "/proc/sys/kernel/yama/ptrace_scope"
	scope := "is not there"
	if b, rerr := os.ReadFile(file); rerr == nil && len(b) > 0 {
		scope = "is " + string(b[:1])
	}
	return fmt.Errorf("copy from process %d: %w: %w: the kernel refuses process_vm_readv; it needs ranks of one user in one user namespace "+
		"that may trace each other: %s %s (0 and 1 will do, 2 and 3 do not; containers need CAP_SYS_PTRACE or a seccomp profile that allows it)",
		pid, transport.ErrUnsupported, err, file, scope)
}

// allowPeers lets every process of this user reach this one where Yama would let only ancestors. Without Yama
// the call fails, and there is nothing to allow.
func allowPeers() { _ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0) }

// sharpenTimers makes sleeps of the calling thread end on time and not up to 50 us later.
func sharpenTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// lifeline is a descriptor of a process that becomes readable when it ends.
type lifeline struct{ f *os.File }

// openLifeline returns an error wrapping transport.ErrPeerGone if the process has ended.
func openLifeline(pid int) (*lifeline, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.EINVAL) { // before Linux 5.10
		if fd, err = unix.PidfdOpen(pid, 0); err == nil {
			err = unix.SetNonblock(fd, true)
		}
	}
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("process %d has ended: %w", pid, transport.ErrPeerGone)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return nil, &transport.LimitError{
			What: fmt.Sprintf("watching process %d", pid), Found: "no file descriptor left", Needed: "1 for each rank of this node",
			Setting: "ulimit -n, or nofile in /etc/security/limits.conf", Err: err,
		}
	case err != nil:
		return nil, fmt.Errorf("watch process %d: pidfd_open: %w", pid, err)
	}
	return &lifeline{os.NewFile(uintptr(fd), fmt.Sprintf("process %d", pid))}, nil
}

// ended reports whether the process has ended.
func (l *lifeline) ended() (dead bool) {
	raw, err := l.f.SyscallConn()
	if err != nil {
		return true
	}
	if err := raw.Control(func(fd uintptr) { dead = readable(fd) }); err != nil {
		return true
	}
	return dead
}

// wait sleeps until the process has ended, and reports that, or until close.
func (l *lifeline) wait() bool {
	raw, err := l.f.SyscallConn()
	return err == nil && raw.Read(readable) == nil
}

func (l *lifeline) close() { l.f.Close() }

func readable(fd uintptr) bool {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p[:], 0)
	return err == nil && n == 1
}
