package touch

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of linux/userfaultfd.h.
const (
	ioctlProtect  = 0xc018aa06
	ioctlContinue = 0xc020aa07
	ioctlWake     = 0x8010aa02
	keepProtected = 1 << 1 // of ioctlContinue: the page cannot be written to
	eventFault    = 0x12
	faultWrite    = 1 << 0
	faultGuarded  = 1 << 1 // the page can be read already
)

// The sizes of an area.
const (
	pageBytes  = 4096
	textBytes  = 192 // of /proc/self/task/TID/syscall: nine numbers
	stackWords = 256
	placeTries = 8
	vainTries  = 100
)

// fault is one, as the thread has written it down.
type fault struct {
	addr, flags uint64
	words       uint64          // of stack
	text        [textBytes]byte // what the kernel says of where the thread stands; it ends in 0
	stack       [stackWords]uint64
}

// area is what the thread works with, outside Go's memory.
type area struct {
	fd, wake, pid uintptr
	tid           uint64 // the thread's; 0 when it has ended
	head          uint64 // faults that were written down; the thread's
	tail          uint64 // of those, that were taken; Take's
	lost          uint64 // faults for which there was no room; the thread's
	vain          uint64 // faults in a row of which it is not known where; the thread's
	begun, solved uint64 // faults whose pages the kernel is asked to enter, and has entered; the thread's
	polls         [2]struct {
		fd              int32
		events, revents int16
	}
	msg         struct{ event, flags, address, thread uint64 } // a uffd_msg
	ask         struct{ start, bytes, mode, done uint64 }      // a uffdio_continue, a uffdio_writeprotect
	here, there [2]uintptr                                     // iovecs
	path        [48]byte
	faults      [Most]fault
}

// These are in assembly. clone starts the thread; raw and copyStack call the kernel; load and store order what the thread and
// goroutines see of each other: the race detector's sync/atomic needs a goroutine.
func clone(flags, stack, tid, f, arg uintptr) (errno uintptr)

func raw(call, a, b, c, d uintptr) (n uintptr)

//go:noescape
func copyStack(pid uintptr, to, from *[2]uintptr) (n uintptr)

//go:noescape
func load(p *uint64) uint64

//go:noescape
func store(p *uint64, v uint64)

// serve is the life of the thread. It has no goroutine: nothing here may grow a stack, allocate, take a lock, or be instrumented by
// the race detector (T1). It calls steps in turn, none of which calls another: the linker allows 792 bytes of stack
// in all, also where nothing is optimised.
//
//go:nosplit
//go:norace
//go:nocheckptr
func serve(a *area) {
	for {
		a.polls[0].fd, a.polls[0].events, a.polls[0].revents = int32(a.fd), unix.POLLIN, 0
		a.polls[1].fd, a.polls[1].events, a.polls[1].revents = int32(a.wake), unix.POLLIN, 0
		raw(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&a.polls)), 2, 0, 0)
		if a.polls[1].revents != 0 {
			return
		}
		n := raw(unix.SYS_READ, a.fd, uintptr(unsafe.Pointer(&a.msg)), unsafe.Sizeof(a.msg), 0)
		if n != unsafe.Sizeof(a.msg) || a.msg.event&0xff != eventFault {
			continue
		}
		if a.head-load(&a.tail) >= Most {
			store(&a.lost, a.lost+1)
		} else {
			f := &a.faults[a.head%Most]
			f.addr, f.flags, f.words = a.msg.address, a.msg.flags, 0
			name(a)
			place(a, f)
			known := faults(f)
			if !known && a.vain < vainTries { // a signal has woken it: whoever goes on there faults again
				a.vain++
				wake(a)
				continue
			}
			a.vain = 0
			if sp := stackPointer(f); known && sp != 0 {
				take(a, f, sp)
			} else {
				f.text[0] = 0
			}
			store(&a.head, a.head+1)
		}
		store(&a.begun, a.begun+1)
		resolve(a)
		store(&a.solved, a.solved+1)
	}
}

// resolve lets the thread that has faulted go on. Who only reads is stopped again when he writes.
//
//go:nosplit
//go:norace
//go:nocheckptr
func resolve(a *area) {
	a.ask.start, a.ask.bytes, a.ask.mode, a.ask.done = a.msg.address&^(pageBytes-1), pageBytes, 0, 0
	call := uintptr(ioctlContinue)
	if a.msg.flags&faultGuarded != 0 {
		call = ioctlProtect
	} else if a.msg.flags&faultWrite == 0 {
		a.ask.mode = keepProtected
	}
	if raw(unix.SYS_IOCTL, a.fd, call, uintptr(unsafe.Pointer(&a.ask)), 0) != 0 {
		wake(a) // another fault has brought the page, or it was taken away once more
	}
}

// wake has the thread that has faulted look again.
//
//go:nosplit
//go:norace
//go:nocheckptr
func wake(a *area) {
	a.ask.start, a.ask.bytes = a.msg.address&^(pageBytes-1), pageBytes
	raw(unix.SYS_IOCTL, a.fd, ioctlWake, uintptr(unsafe.Pointer(&a.ask)), 0)
}

// name makes the path of what the kernel says of the thread.
//
//go:nosplit
//go:norace
func name(a *area) {
	const before, after = "/proc/self/task/", "/syscall"
	at := 0
	for i := range len(before) {
		a.path[at] = before[i]
		at++
	}
	thread, unit := uint32(a.msg.thread), uint32(1)
	for thread/unit >= 10 {
		unit *= 10
	}
	for ; unit > 0; unit /= 10 {
		a.path[at] = '0' + byte(thread/unit%10)
		at++
	}
	for i := range len(after) {
		a.path[at] = after[i]
		at++
	}
	a.path[at] = 0
}

// place reads it. It says "running" of a thread that has yet to go to sleep.
//
//go:nosplit
//go:norace
//go:nocheckptr
func place(a *area, f *fault) {
	f.text[0] = 0
	fd := raw(unix.SYS_OPENAT, 0, uintptr(unsafe.Pointer(&a.path)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if int(fd) < 0 {
		return
	}
	for range placeTries {
		n := raw(unix.SYS_PREAD64, fd, uintptr(unsafe.Pointer(&f.text)), textBytes-1, 0)
		if n >= textBytes {
			n = 0 // an error
		}
		f.text[n] = 0
		if n > 0 && f.text[0] != 'r' {
			break
		}
		raw(unix.SYS_SCHED_YIELD, 0, 0, 0, 0)
	}
	raw(unix.SYS_CLOSE, fd, 0, 0, 0)
}

// faults reports whether a thread stands where one does that waits for a page: in no system call, or in one that is given memory.
//
//go:nosplit
//go:norace
func faults(f *fault) bool {
	if f.text[0] == '-' {
		return true
	}
	call := 0
	for i := 0; i < 4 && f.text[i] >= '0' && f.text[i] <= '9'; i++ {
		call = 10*call + int(f.text[i]-'0')
	}
	switch {
	case f.text[0] == 0, f.text[0] == 'r': // it is not known, or running
		return false
	case call <= unix.SYS_WRITE, call >= unix.SYS_PREAD64 && call <= unix.SYS_WRITEV, call >= unix.SYS_SENDTO && call <= unix.SYS_RECVMSG,
		call >= unix.SYS_PREADV && call <= unix.SYS_PWRITEV, call >= unix.SYS_PROCESS_VM_READV && call <= unix.SYS_PROCESS_VM_WRITEV,
		call == unix.SYS_GETRANDOM, call >= unix.SYS_PREADV2 && call <= unix.SYS_PWRITEV2, call == unix.SYS_SENDMMSG, call == unix.SYS_RECVMMSG:
		return true
	}
	return false
}

// stackPointer is the last but one of the numbers; 0 where there is none.
//
//go:nosplit
//go:norace
func stackPointer(f *fault) (sp uintptr) {
	n := 0
	for n < textBytes-1 && f.text[n] != 0 {
		n++
	}
	for blanks, shift := 0, uint(0); n > 0 && blanks < 2; {
		n--
		c := f.text[n]
		switch {
		case c == ' ':
			blanks++
		case blanks != 1:
		case c >= '0' && c <= '9':
			sp |= uintptr(c-'0') << shift
			shift += 4
		case c >= 'a' && c <= 'f':
			sp |= uintptr(c-'a'+10) << shift
			shift += 4
		}
	}
	return sp
}

// take copies the innermost part of the stack. The kernel copies, so that its end may come.
//
//go:nosplit
//go:norace
//go:nocheckptr
func take(a *area, f *fault, sp uintptr) {
	a.here[0], a.here[1] = uintptr(unsafe.Pointer(&f.stack)), unsafe.Sizeof(f.stack)
	a.there[0], a.there[1] = sp, unsafe.Sizeof(f.stack)
	if n := copyStack(a.pid, &a.here, &a.there); n <= unsafe.Sizeof(f.stack) {
		f.words = uint64(n / 8)
	}
}
