package launch

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gopgas/internal/control"
	"gopgas/internal/pmi"
)

// process is one started rank and our ends of what connects us to it.
type process struct {
	rank    int
	proc    *os.Process
	started time.Time

	out, err *os.File // our ends of its output pipes; nil where it writes to the terminal itself
	pmi      net.Conn
	ctl      net.Conn
	client   *control.Client

	said   sync.WaitGroup // the goroutines that serve pmi and ctl: done when all it ever sent has been read
	output sync.WaitGroup // the goroutines that copy its output

	end *RankEnd // nil: it runs; only the loop looks at it
}

// pid is the number of the process and of its group. It stays taken until reap (L2).
func (p *process) pid() int { return p.proc.Pid }

// startRank starts one rank. It must be called from a thread that lives as long as the job: the kernel sends the
// parent-death signal when the thread ends. What it prints goes to screen, or, where that is nil, to pipes.
func startRank(s *Spec, path, job string, rank int, in *os.File, screen [2]*os.File) (*process, error) {
	p := &process{rank: rank}
	var theirs []*os.File // ours to close after the start
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	fail := func(what string, err error) (*process, error) {
		p.closeAll()
		return nil, fmt.Errorf("rank %d: %s: %w%s", rank, what, err, cureFor(err, s.N))
	}
	var err error
	files := []*os.File{in, screen[0], screen[1]}
	for i, end := range []**os.File{&p.out, &p.err} {
		if screen[i] != nil {
			continue
		}
		var w *os.File
		if *end, w, err = os.Pipe(); err != nil {
			return fail("make a pipe for its output", err)
		}
		theirs, files[1+i] = append(theirs, w), w
	}
	for _, end := range []*net.Conn{&p.pmi, &p.ctl} {
		var far *os.File
		if *end, far, err = socketPair(); err != nil {
			return fail("make a socket to it", err)
		}
		theirs, files = append(theirs, far), append(files, far)
	}
	p.started = time.Now()
	p.proc, err = os.StartProcess(path, s.argv(rank), &os.ProcAttr{
		Dir: s.Dir, Env: rankEnv(s, job, rank), Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fail("start it", err)
	}
	return p, nil
}

// cureFor adds to a system error what a person can do about it.
func cureFor(err error, n int) string {
	switch {
	case isErrno(err, syscall.EMFILE):
		return fmt.Sprintf("; %d ranks need about %d open files in the launcher: raise the limit with ulimit -n", n, 5*n+20)
	case isErrno(err, syscall.EAGAIN):
		return "; the limit on processes is reached: see ulimit -u and the pids controller of the control group"
	}
	return ""
}

// socketPair makes a connected pair: our end as a connection, the rank's as a file to inherit.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	far := os.NewFile(uintptr(fds[1]), "rank's end")
	near, err := pmi.Adopt(fds[0])
	if err != nil {
		unix.Close(fds[0])
		far.Close()
		return nil, nil, err
	}
	return near, far, nil
}

// closeOutput closes our ends of the output pipes.
func (p *process) closeOutput() {
	for _, f := range []*os.File{p.out, p.err} {
		if f != nil {
			f.Close()
		}
	}
}

// closeAll closes our ends.
func (p *process) closeAll() {
	p.closeOutput()
	for _, c := range []net.Conn{p.pmi, p.ctl} {
		if c != nil {
			c.Close()
		}
	}
}

// signal sends sig to the rank's whole group. It is safe until reap.
func (p *process) signal(sig syscall.Signal) { _ = unix.Kill(-p.pid(), sig) }

// awaitEnd returns when the leader has ended and all that it sent before has been read (L3). Children of it may still
// hold the other ends of the sockets, so reading is told to stop at what is there.
func (p *process) awaitEnd(ended func()) (RankEnd, error) {
	e := RankEnd{Rank: p.rank, PID: p.pid()}
	var err error
	e.Exit, e.Signal, err = waitEnd(p.pid())
	e.After = time.Since(p.started)
	ended()
	for _, c := range []net.Conn{p.pmi, p.ctl} {
		if u, ok := c.(*net.UnixConn); ok {
			_ = u.CloseRead() // Linux still delivers what is buffered, then the end
		}
	}
	p.said.Wait()
	return e, err
}

// reap takes the leader's number back and completes e. Nothing may be sent to the group afterwards.
func (p *process) reap(e *RankEnd) {
	state, err := p.proc.Wait()
	if err != nil {
		return
	}
	e.CPU = state.UserTime() + state.SystemTime()
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
		e.MaxRSS = ru.Maxrss << 10
	}
}
