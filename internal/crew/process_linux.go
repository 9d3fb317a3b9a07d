package crew

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gopgas/internal/pmi"
)

// process is a rank of this host and our ends of what connects us to it.
type process struct {
	rank    int
	proc    *os.Process
	started time.Time

	out, err *os.File // our ends of its output pipes; nil where it writes to a file of ours itself
	pmi, ctl net.Conn
}

// PID implements Process. The number stays taken until the crew is reaped (W1).
func (p *process) PID() int { return p.proc.Pid }

// startRank starts one rank. It must be called from a thread that lives as long as the crew: the kernel sends the
// parent-death signal when the thread ends.
func startRank(plan *Plan, path string, rank int, std Streams) (*process, error) {
	p := &process{rank: rank}
	var theirs []*os.File // ours to close after the start
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	fail := func(what string, err error) (*process, error) {
		p.closeAll()
		return nil, fmt.Errorf("rank %d: %s: %w%s", rank, what, err, Cure(err, plan.Count))
	}
	var err error
	files := []*os.File{std.In, std.Out, std.Err}
	if std.In == nil {
		if files[0], err = os.Open(os.DevNull); err != nil {
			return fail("open its standard input", err)
		}
		theirs = append(theirs, files[0])
	}
	for i, end := range []**os.File{&p.out, &p.err} {
		if files[1+i] != nil {
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
		if *end, far, err = SocketPair(); err != nil {
			return fail("make a socket to it", err)
		}
		theirs, files = append(theirs, far), append(files, far)
	}
	p.started = time.Now()
	p.proc, err = os.StartProcess(path, plan.argv(rank), &os.ProcAttr{
		Dir: plan.Dir, Env: rankEnv(plan, rank), Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fail("start it", err)
	}
	return p, nil
}

// SocketPair makes a connected pair: our end as a connection, the other as a file to hand on. Neither is inherited by accident.
func SocketPair() (net.Conn, *os.File, error) {
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

// Output implements Process.
func (p *process) Output() (stdout, stderr io.ReadCloser) {
	if p.out != nil {
		stdout = p.out
	}
	if p.err != nil {
		stderr = p.err
	}
	return stdout, stderr
}

// Talk implements Process.
func (p *process) Talk() (pmi, control net.Conn) { return p.pmi, p.ctl }

// Signal implements Process.
func (p *process) Signal(sig syscall.Signal) { _ = unix.Kill(-p.PID(), sig) }

// Wait implements Process. The leader stays a zombie (W1).
func (p *process) Wait() (End, error) {
	var e End
	var err error
	e.Exit, e.Signal, err = waitEnd(p.PID())
	e.After = time.Since(p.started)
	return e, err
}

// Settle implements Process.
func (p *process) Settle() {
	for _, c := range []net.Conn{p.pmi, p.ctl} {
		if u, ok := c.(*net.UnixConn); ok {
			_ = u.CloseRead() // Linux still delivers what is buffered, then the end
		}
	}
}

// Look implements Process.
func (p *process) Look(<-chan struct{}) Look {
	return Look{CPU: p.Used(), Text: describe(p.PID()), Stacks: showsStacks(p.PID())}
}

// Used implements Process.
func (p *process) Used() time.Duration { return cpuOf(p.PID()) }

// CloseOutput implements Process.
func (p *process) CloseOutput() {
	for _, f := range []*os.File{p.out, p.err} {
		if f != nil {
			f.Close()
		}
	}
}

// closeAll closes our ends.
func (p *process) closeAll() {
	p.CloseOutput()
	for _, c := range []net.Conn{p.pmi, p.ctl} {
		if c != nil {
			c.Close()
		}
	}
}

// reap takes the leader's number back. Nothing may be sent to the group afterwards.
func (p *process) reap() (u Usage) {
	state, err := p.proc.Wait()
	if err != nil {
		return u
	}
	u.CPU = state.UserTime() + state.SystemTime()
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSS = ru.Maxrss << 10
	}
	return u
}
