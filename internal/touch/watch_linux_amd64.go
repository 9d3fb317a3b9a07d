package touch

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
)

// Watch sees the first touches of pages. Open makes it. Any goroutine may call its methods, but Take, which is called by one at a
// time, and Free, which comes after all others.
type Watch struct {
	a      *area
	memory []byte // of a, and the thread's stack
	calls  bool

	mu     sync.Mutex // guards what follows
	seen   []mem.Range
	armed  [2]uint64 // a.begun and a.solved at the last Rearm
	closed bool
}

// Numbers of linux/userfaultfd.h and linux/futex.h.
const (
	userModeOnly   = 1
	version        = 0xaa
	ioctlAPI       = 0xc018aa3f
	ioctlRegister  = 0xc020aa00
	ofProtection   = 1 << 1 // faults that a registration asks for
	ofMinor        = 1 << 2
	needProtection = 1<<0 | 1<<12 // features: of pages of shared memory
	needThread     = 1 << 8
	needMinor      = 1 << 10
	needExact      = 1 << 11
	sinceGuarded   = 1 << 13 // a feature of the kernel in which a page can first be entered without the right to write (6.4)
	futexWait      = 0
	threadStack    = 32 << 10
)

// errBefore: with such a kernel a page that was loaded from cannot be entered so that a store to it faults again.
var errBefore = errors.New("a kernel before Linux 6.4, without minor faults of pages that stay protected (userfaultfd)")

// Open begins to watch: it starts the thread. Its error, where this cannot be, wraps ErrUnseen.
func Open() (*Watch, error) { return open(0, userModeOnly) }

// open tries the modes of userfaultfd in turn.
func open(modes ...uintptr) (*Watch, error) {
	fd, calls, err := openFaults(modes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnseen, err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: eventfd: %w", ErrUnseen, err), unix.Close(fd))
	}
	bytes := (int(unsafe.Sizeof(area{}))+pageBytes-1)&^(pageBytes-1) + threadStack
	memory, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %d bytes of memory: %w", ErrUnseen, bytes, err), unix.Close(fd), unix.Close(wake))
	}
	w := &Watch{a: (*area)(unsafe.Pointer(&memory[0])), memory: memory, calls: calls}
	w.a.fd, w.a.wake, w.a.pid = uintptr(fd), uintptr(wake), uintptr(os.Getpid())
	if errno := start(w.a, uintptr(unsafe.Pointer(&memory[0]))+uintptr(bytes), reflect.ValueOf(serve).Pointer()); errno != 0 {
		return nil, errors.Join(fmt.Errorf("%w: start a thread: %w", ErrUnseen, errno), unix.Close(fd), unix.Close(wake), unix.Munmap(memory))
	}
	return w, nil
}

// openFaults returns the kernel's descriptor of page faults, which are those of system calls too if calls is true: that takes rights.
func openFaults(modes []uintptr) (fd int, calls bool, err error) {
	for _, mode := range modes {
		n, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|mode, 0, 0)
		if errno != 0 {
			err = fmt.Errorf("userfaultfd: %w", errno)
			continue
		}
		api := [3]uint64{version, needProtection | needThread | needMinor | needExact}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, n, ioctlAPI, uintptr(unsafe.Pointer(&api))); errno != 0 {
			return 0, false, errors.Join(fmt.Errorf("a kernel without minor faults or write protection of shared memory (userfaultfd): %w", errno), unix.Close(int(n)))
		}
		if api[1]&sinceGuarded == 0 { // what the kernel has, not what was asked for; there a load would fault for ever
			return 0, false, errors.Join(errBefore, unix.Close(int(n)))
		}
		return int(n), mode == 0, nil
	}
	return 0, false, err
}

// start starts the thread, with all signals blocked for ever: Go's handlers need a goroutine.
//
//go:nosplit
//go:norace
//go:nocheckptr
func start(a *area, stack, code uintptr) unix.Errno {
	const flags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM |
		unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID
	all, old := ^uint64(0), uint64(0)
	raw(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), 8)
	n := clone(flags, stack, uintptr(unsafe.Pointer(&a.tid)), code, uintptr(unsafe.Pointer(a)))
	raw(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&old)), 0, 8)
	if int(n) < 0 {
		return unix.Errno(-n)
	}
	return 0
}

// Kernel reports whether system calls may be given watched memory. Else they fail with EFAULT where they come upon a page that was
// not touched since the last Rearm.
func (w *Watch) Kernel() bool { return w.calls }

// Add maps the pages around r a second time, and returns r there: its touches are seen, those of r itself are not. r is memory that
// can be shared and whose pages are there, as Alloc returns it, or a mapper of processes. Its error wraps ErrUnseen.
func (w *Watch) Add(r mem.Range) (mem.Range, error) {
	lo := r.Addr() &^ (pageBytes - 1)
	bytes := (r.Addr()+uint64(r.Bytes)+pageBytes-1)&^(pageBytes-1) - lo
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return mem.Range{}, fmt.Errorf("%w: closed", ErrUnseen)
	}
	at, _, errno := unix.Syscall6(unix.SYS_MREMAP, uintptr(lo), 0, uintptr(bytes), unix.MREMAP_MAYMOVE, 0, 0)
	if errno != 0 {
		return mem.Range{}, fmt.Errorf("%w: map %d bytes a second time: %w", ErrUnseen, r.Bytes, errno)
	}
	second := mem.At(at, int(bytes))
	ask := [4]uint64{uint64(at), bytes, ofMinor | ofProtection}
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, w.a.fd, ioctlRegister, uintptr(unsafe.Pointer(&ask)))
	// Where r is locked the second mapping is too, with all its pages there.
	for _, call := range [][2]uintptr{{unix.SYS_MUNLOCK}, {unix.SYS_MADVISE, unix.MADV_DONTNEED}, {unix.SYS_MADVISE, unix.MADV_DONTFORK}} {
		if errno == 0 {
			_, _, errno = unix.Syscall(call[0], at, uintptr(bytes), call[1])
		}
	}
	if errno != 0 {
		return mem.Range{}, errors.Join(fmt.Errorf("%w: register %d bytes: %w", ErrUnseen, r.Bytes, errno), unmap(second))
	}
	w.seen = append(w.seen, second)
	return second.Slice(int(r.Addr()-lo), r.Bytes), nil
}

// Remove unmaps what Add has returned. Nobody may touch it any more.
func (w *Watch) Remove(r mem.Range) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.seen, func(s mem.Range) bool { return s.Contains(r) })
	if i < 0 {
		return nil
	}
	s := w.seen[i]
	w.seen = slices.Delete(w.seen, i, i+1)
	return unmap(s)
}

func unmap(r mem.Range) error {
	if _, _, errno := unix.Syscall(unix.SYS_MUNMAP, uintptr(r.Base), uintptr(r.Bytes), 0); errno != 0 {
		return fmt.Errorf("unmap %d bytes: %w", r.Bytes, errno)
	}
	return nil
}

// Pending reports whether there is something to take. A touch is there before the instruction that touches has ended.
func (w *Watch) Pending() bool { return load(&w.a.head) != load(&w.a.tail) }

// Take calls f for each touch since the last Take, in order, but for those of functions that read more than they were asked for.
// While f runs its touch is pending. It returns for how many touches there was no room since Open.
func (w *Watch) Take(f func(Touch)) (lost int) {
	for at := load(&w.a.tail); at != load(&w.a.head); at++ {
		s := &w.a.faults[at%Most]
		pcs := callers(string(s.text[:]), s.stack[:s.words])
		if len(pcs) > 0 && !loose(pcs) {
			f(Touch{Addr: s.addr, Write: s.flags&(faultWrite|faultGuarded) != 0, Atomic: locks(pcs[0] - 1), PCs: pcs})
		}
		store(&w.a.tail, at+1)
	}
	return int(load(&w.a.lost))
}

// Rearm makes the next touch of each page a first one. It takes a system call for each Add if there was a touch since the last one.
func (w *Watch) Rearm() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	entered := [2]uint64{load(&w.a.begun), load(&w.a.solved)} // the program goes on before the thread can count it as solved
	if entered == w.armed {
		return nil
	}
	w.armed = entered
	for _, s := range w.seen {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(s.Base), uintptr(s.Bytes), unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("watch %d bytes anew: %w", s.Bytes, errno)
		}
	}
	return nil
}

// Close ends the thread. From then on touches are not seen and take nothing; the memory stays.
func (w *Watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	one := [8]byte{1}
	if _, err := unix.Write(int(w.a.wake), one[:]); err != nil {
		return fmt.Errorf("end the thread that watches page faults: %w", err)
	}
	for tid := load(&w.a.tid); tid != 0; tid = load(&w.a.tid) { // the kernel clears it, and wakes
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&w.a.tid)), futexWait, uintptr(tid), 0, 0, 0)
	}
	return errors.Join(unix.Close(int(w.a.fd)), unix.Close(int(w.a.wake)))
}

// Free closes, and unmaps all that Add has returned.
func (w *Watch) Free() error {
	err := w.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		err = errors.Join(err, unmap(s))
	}
	w.seen = nil
	if w.memory != nil {
		err = errors.Join(err, unix.Munmap(w.memory))
	}
	w.memory = nil
	return err
}

func alloc(bytes int) (mem.Range, func() error, error) {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		return mem.Range{}, nil, fmt.Errorf("%w: %d bytes of memory: %w", ErrUnseen, bytes, err)
	}
	return mem.Of(m), func() error { return unix.Munmap(m) }, nil
}
