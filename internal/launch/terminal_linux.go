package launch

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// terminal is the launcher's terminal while a wrapped rank has it: a debugger that is talked to needs a terminal, not a pipe. The
// rank's process group is the one in the foreground then, so what is typed goes to it, Ctrl-C included. A nil terminal is
// nobody's.
type terminal struct {
	file   *os.File
	rank   int
	own    int           // the launcher's process group
	before *unix.Termios // how the terminal was set
	given  bool
}

// openTerminal returns the terminal that a rank will have: where one that is wrapped reads it, and this process may give it away.
func openTerminal(s *Spec) *terminal {
	if s.Stdin == nil || s.StdinTo < 0 || s.Wrap[s.StdinTo] == nil || !s.here(s.StdinTo) {
		return nil
	}
	t := &terminal{file: s.Stdin, rank: s.StdinTo, own: unix.Getpgrp()}
	err := t.control(func(fd int) (err error) {
		front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err != nil || front != t.own {
			return unix.ENOTTY // no terminal, not this session's, or this process is in the background
		}
		t.before, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	if err != nil {
		return nil
	}
	return t
}

// control calls f with the descriptor, without File.Fd, which would end the use of deadlines.
func (t *terminal) control(f func(fd int) error) error {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = f(int(fd)) })
	if cerr != nil {
		return cerr
	}
	return err
}

// of reports whether rank has the terminal.
func (t *terminal) of(rank int) bool { return t != nil && t.rank == rank }

// output returns w as what a rank that has the terminal writes to; nil if that is a pipe, as for all others.
func (t *terminal) output(rank int, w io.Writer, taps []tap) *os.File {
	f, ok := w.(*os.File)
	if !ok || !t.of(rank) || !isTerminal(f) || len(taps) != 1 || taps[0].to.w != w {
		return nil
	}
	return f
}

// give puts the rank's process group into the foreground. It may have been stopped when it looked at the terminal too early.
func (t *terminal) give(p *member) error {
	err := t.control(func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, p.hand.PID()) })
	t.given = err == nil
	p.hand.Signal(unix.SIGCONT)
	return err
}

// takeBack makes the terminal the launcher's again, as it was.
func (t *terminal) takeBack() {
	if t == nil || !t.given {
		return
	}
	t.given = false
	// A process in the background that does this is stopped by SIGTTOU, unless its thread blocks that.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block, was unix.Sigset_t
	block.Val[0] = 1 << (unix.SIGTTOU - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &block, &was) != nil {
		return
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil) }()
	_ = t.control(func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, t.own); err != nil {
			return err
		}
		return unix.IoctlSetTermios(fd, unix.TCSETSW, t.before)
	})
}
