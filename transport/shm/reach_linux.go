package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gopgas/transport"
)

// reach opens the memory behind t by the first way that works, and says which one that was. Its error is a
// *transport.LimitError where this process is short of something, else it wraps ErrUnsupported and tells what
// became of each way.
func (m *Mapper) reach(what string, t token) (int, Ways, error) {
	if t.boot != m.id.boot && t.boot != ([16]byte{}) && m.id.boot != ([16]byte{}) {
		return -1, 0, fmt.Errorf("map %s of process %d: %w: it was made on another machine (boot %x, here %x)",
			what, t.pid, transport.ErrUnsupported, t.boot[:4], m.id.boot[:4])
	}
	var reasons []string
	for _, w := range [...]struct {
		way  Ways
		open func(token) (int, error)
	}{{WayProc, m.openProc}, {WaySocket, m.openSocket}} {
		var err error
		switch {
		case m.c.Ways&w.way == 0:
			err = fmt.Errorf("not allowed to this rank (ways are %s)", m.c.Ways)
		case t.ways&w.way == 0:
			err = errors.New("not offered by the owner")
		default:
			var fd int
			if fd, err = w.open(t); err == nil {
				return fd, w.way, nil
			}
			if limit := m.explain(need{what: "mapping " + what}, err); limit != nil {
				return -1, 0, limit
			}
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", w.way, err))
	}
	return -1, 0, fmt.Errorf("map %s (%s) of process %d: %w: %s",
		what, t.kind, t.pid, transport.ErrUnsupported, strings.Join(reasons, "; "))
}

// openProc opens the owner's descriptor through its folder in /proc. The kernel allows that to processes of the
// same user and user namespace, unless the owner may not be looked into (hidepid, PR_SET_DUMPABLE, a setuid program).
func (m *Mapper) openProc(t token) (int, error) {
	if t.pidNS != 0 && m.id.pidNS != 0 && t.pidNS != m.id.pidNS {
		return -1, fmt.Errorf("process %d is in another pid namespace", t.pid)
	}
	// What has this pid and this descriptor now may be anything, a device too, and opening a device can have
	// effects. A path descriptor opens nothing: look first.
	path := filepath.Join(m.c.Roots.Proc, fmt.Sprintf("%d/fd/%d", t.pid, t.fd))
	look := -1
	err := retry(func() (err error) {
		look, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(look)
	if err := verify(look, t); err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	self := filepath.Join(m.c.Roots.Proc, fmt.Sprintf("self/fd/%d", look))
	if t.kind == kindMemfd {
		if name, err := os.Readlink(self); err != nil || !strings.HasPrefix(name, "/memfd:"+memfdName(t.id)) {
			return -1, fmt.Errorf("%s is %q and not the memory meant", path, name)
		}
	}
	fd := -1
	err = retry(func() (err error) {
		fd, err = unix.Open(self, unix.O_RDWR|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("reopen %s: %w", path, err)
	}
	return fd, nil
}

// openSocket asks the owner.
func (m *Mapper) openSocket(t token) (int, error) {
	fd, err := ask(t)
	if err != nil {
		return -1, err
	}
	if err := verify(fd, t); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// verify compares what a descriptor leads to with what the token says, so that another process with a
// recycled pid or a reused descriptor number is never taken for the owner.
func verify(fd int, t token) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("fstat: %w", err)
	}
	full := wholePages(int64(t.bytes))
	if st.Mode&unix.S_IFMT != unix.S_IFREG || uint64(st.Dev) != t.dev || st.Ino != t.ino || st.Size != full {
		return fmt.Errorf("not the memory meant: device %#x, inode %d, %d bytes; the token says device %#x, inode %d, %d bytes",
			st.Dev, st.Ino, st.Size, t.dev, t.ino, full)
	}
	return nil
}

// wholePages rounds bytes up to pages.
func wholePages(bytes int64) int64 {
	page := int64(os.Getpagesize())
	return (bytes + page - 1) / page * page
}
