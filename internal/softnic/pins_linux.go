package softnic

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// noLimit stands for a limit that there is not.
const noLimit = math.MaxInt64

// raiseMemlock raises the process's limit of locked memory as far as it may and returns it.
func raiseMemlock() (int64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return 0, err
	}
	if l.Cur < l.Max {
		raised := unix.Rlimit{Cur: l.Max, Max: l.Max}
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &raised); err == nil {
			l = raised
		}
	}
	if l.Cur > math.MaxInt64 {
		return noLimit, nil
	}
	return int64(l.Cur), nil
}

func lockPages(r mem.Range) error { return unix.Mlock(r.Data()) }

func unlockPages(r mem.Range) error { return unix.Munlock(r.Data()) }

// refused explains the kernel's error for locking needed more bytes of r.
func (p *Pins) refused(r mem.Range, needed int64, err error) error {
	var l unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) // zero says as much as the error would
	locked := int64(p.pages.locked * p.page)
	limited := errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EPERM) ||
		errors.Is(err, unix.ENOMEM) && l.Cur < uint64(locked+needed)
	if !limited {
		return fmt.Errorf("register %d bytes at %#x: mlock: %w: the memory is not mapped, cannot be read, or needs more mappings than "+
			"vm.max_map_count allows", r.Bytes, r.Addr(), err)
	}
	return &transport.LimitError{
		What:    fmt.Sprintf("registering %s of memory", sizeOf(int64(r.Bytes))),
		Found:   fmt.Sprintf("%s that the kernel lets this process lock (RLIMIT_MEMLOCK), %s locked by this NIC", sizeOf(int64(min(l.Cur, noLimit))), sizeOf(locked)),
		Needed:  sizeOf(needed) + " more",
		Setting: "ulimit -l unlimited, memlock in /etc/security/limits.conf, or LimitMEMLOCK of the service",
		Err:     err,
	}
}
