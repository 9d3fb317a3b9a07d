package launch

import (
	"errors"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// stdin decides what each rank reads, and copies where that takes a copy.
type stdin struct {
	null  *os.File
	files []*os.File       // what rank R inherits
	pipes []io.WriteCloser // our ends, of those that are fed
	far   []int            // the ranks on other hosts that are to be fed
	src   *os.File
	over  chan struct{} // closed by end
}

// openStdin prepares the inputs of all ranks. A file or pipe that one rank reads is inherited as it is. A terminal is not: a
// process group in the background may not read it; unless the rank has the terminal.
func openStdin(s *Spec, tty *terminal) (*stdin, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	in := &stdin{null: null, files: make([]*os.File, s.N), src: s.Stdin, over: make(chan struct{})}
	for r := range in.files {
		in.files[r] = null
		wanted := s.Stdin != nil && (s.StdinTo == StdinAll || s.StdinTo == r)
		switch {
		case !wanted:
		case !s.here(r):
			in.far = append(in.far, r)
		case s.StdinTo == r && (tty.of(r) || !isTerminal(s.Stdin)):
			in.files[r] = s.Stdin
		default:
			rd, wr, err := os.Pipe()
			if err != nil {
				in.started()
				in.end()
				return nil, err
			}
			in.files[r] = rd
			in.pipes = append(in.pipes, wr)
		}
	}
	return in, nil
}

// started closes what only the ranks need.
func (in *stdin) started() {
	for _, f := range in.files {
		if f != nil && f != in.null && f != in.src {
			f.Close()
		}
	}
	in.null.Close()
}

// feed copies the source to every pipe until the source or the last reader ends.
func (in *stdin) feed() {
	if len(in.pipes) == 0 {
		return
	}
	if isTerminal(in.src) {
		runtime.LockOSThread() // for ever: it ends with the goroutine
		blockTTIN()
	}
	buf := make([]byte, 32<<10)
	open := append([]io.WriteCloser(nil), in.pipes...)
	for len(open) > 0 {
		n, err := in.read(buf)
		kept := open[:0]
		for _, p := range open {
			if _, werr := p.Write(buf[:n]); werr != nil || err != nil {
				p.Close() // its rank has ended or reads no more; or there is no more
			} else {
				kept = append(kept, p)
			}
		}
		open = kept
		if err != nil {
			return
		}
	}
}

// foregroundEvery is how often a launcher in the background looks whether it has come to the front.
const foregroundEvery = 100 * time.Millisecond

// read reads the source; of a terminal it waits until this process is in its foreground. In the background a read stops a process, which would be the launcher,
// although perhaps no rank wants to read: a thread that blocks the signal gets an error instead.
func (in *stdin) read(buf []byte) (int, error) {
	for {
		n, err := in.src.Read(buf)
		if n > 0 || !errors.Is(err, unix.EIO) || !inBackground(in.src) {
			return n, err
		}
		select {
		case <-in.over:
			return 0, io.EOF
		case <-time.After(foregroundEvery):
		}
	}
}

// inBackground says whether f is this session's terminal, and another process group is in its foreground.
func inBackground(f *os.File) bool {
	t := terminal{file: f}
	front := 0
	err := t.control(func(fd int) (err error) {
		front, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return err == nil && front != unix.Getpgrp()
}

// blockTTIN has the calling thread not stopped by a read from the background.
func blockTTIN() {
	var block unix.Sigset_t
	block.Val[0] = 1 << (unix.SIGTTIN - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &block, nil) // which cannot fail
}

// end stops feed where it can be stopped: a read from a terminal ends with the launcher.
func (in *stdin) end() {
	close(in.over)
	for _, p := range in.pipes {
		p.Close()
	}
	if len(in.pipes) > 0 {
		_ = in.src.SetReadDeadline(time.Unix(1, 0))
	}
}

// isTerminal asks without File.Fd, which would end the use of deadlines.
func isTerminal(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	terminal := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		terminal = err == nil
	})
	return err == nil && terminal
}
