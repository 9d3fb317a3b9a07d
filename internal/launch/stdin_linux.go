package launch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
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

// feed copies the source to every pipe until the source or the last reader ends. Of several readers each reads at its own pace, until one is mostAhead chunks
// behind the source.
func (in *stdin) feed() {
	if len(in.pipes) == 0 {
		return
	}
	if isTerminal(in.src) {
		runtime.LockOSThread() // for ever: it ends with the goroutine
		blockTTIN()
	}
	ahead := 0 // a single reader holds up itself alone, and what it does not read stays in the source
	if len(in.pipes) > 1 {
		ahead = mostAhead
	}
	var open []*feeder
	for _, p := range in.pipes {
		f := &feeder{to: p, chunks: make(chan []byte, ahead), gone: make(chan struct{})}
		go f.run()
		open = append(open, f)
	}
	buf := make([]byte, chunkSize)
	for len(open) > 0 {
		n, err := in.read(buf)
		if n > 0 {
			chunk := bytes.Clone(buf[:n])
			open = slices.DeleteFunc(open, func(f *feeder) bool { return !f.take(chunk) })
		}
		if err != nil {
			break
		}
	}
	for _, f := range open {
		close(f.chunks)
	}
}

// What feed holds of the source for readers that are behind: chunkSize times mostAhead bytes, 16 MiB.
const (
	chunkSize = 32 << 10
	mostAhead = 512
)

// feeder copies to one pipe.
type feeder struct {
	to     io.WriteCloser
	chunks chan []byte
	gone   chan struct{} // closed when its rank has ended or reads no more
}

// take waits for room and says whether the reader is still there.
func (f *feeder) take(chunk []byte) bool {
	select {
	case f.chunks <- chunk:
		return true
	case <-f.gone:
		return false
	}
}

func (f *feeder) run() {
	defer close(f.gone)
	defer f.to.Close()
	for chunk := range f.chunks {
		if _, err := f.to.Write(chunk); err != nil {
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
