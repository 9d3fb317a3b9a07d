package agent

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gopgas/internal/crew"
)

// remote is a rank on another host. It implements crew.Process.
type remote struct {
	host *Host
	i    int // counted from the host's first
	pid  int

	in        *channel
	out, err  *channel
	pmi, ctl  net.Conn
	conversed sync.WaitGroup
	begun     time.Time

	once  sync.Once
	ended chan struct{} // closed after end was set
	end   crew.End

	used  atomic.Int64 // Nanos of CPU, as last told
	asked atomic.Bool  // for that, and there is no answer yet
}

// attach makes our ends of the channels. The launcher speaks with every rank over sockets, whose buffers bound what a rank that does not listen can hold up:
// so two of them are here, with a pair of carriers each.
func (r *remote) attach(pid int) error {
	s := r.host.stream
	r.pid, r.begun = pid, time.Now()
	for which, near := range map[int]*net.Conn{pmiTalk: &r.pmi, controlTalk: &r.ctl} {
		conn, file, err := crew.SocketPair()
		if err != nil {
			return err
		}
		*near = conn
		far, err := net.FileConn(file)
		file.Close()
		if err != nil {
			return err
		}
		c := s.open(channelOf(r.i, which), nil)
		r.conversed.Go(func() { converse(c, far, far.(*net.UnixConn).CloseWrite) })
	}
	r.out, r.err = s.open(channelOf(r.i, stdout), nil), s.open(channelOf(r.i, stderr), nil)
	r.in = s.open(channelOf(r.i, stdin), nil)
	return nil
}

func (r *remote) PID() int                               { return r.pid }
func (r *remote) Output() (stdout, stderr io.ReadCloser) { return r.out, r.err }
func (r *remote) Talk() (pmi, control net.Conn)          { return r.pmi, r.ctl }

// Signal implements crew.Process. To a host that was lost nothing is sent.
func (r *remote) Signal(sig syscall.Signal) {
	r.host.stream.tell(note{Do: signal, Rank: r.i, Signal: int(sig)})
}

// AskStacks implements crew.Process.
func (r *remote) AskStacks() { r.host.stream.tell(note{Do: stacks, Rank: r.i}) }

// over takes the end that the agent tells, once.
func (r *remote) over(e crew.End) (first bool) {
	r.once.Do(func() {
		r.end, first = e, true
		close(r.ended)
	})
	return first
}

// Wait implements crew.Process.
func (r *remote) Wait() (crew.End, error) {
	select {
	case <-r.ended:
		return r.end, nil
	case <-r.host.lost:
	}
	select {
	case <-r.ended: // it came just before
		return r.end, nil
	default:
		return crew.End{Lost: r.host.why, After: time.Since(r.begun)}, nil
	}
}

// Settle implements crew.Process. The agent ends both conversations before it tells of the end.
func (r *remote) Settle() {}

// Look implements crew.Process.
func (r *remote) Look(stop <-chan struct{}) crew.Look {
	id, answer := r.host.byID.ask()
	defer r.host.byID.forget(id)
	r.host.stream.tell(note{Do: look, Rank: r.i, ID: id})
	select {
	case l := <-answer:
		return l
	case <-stop:
	case <-r.host.lost:
	}
	return crew.Look{CPU: r.Used(), Text: "nor does host " + r.host.cfg.Name}
}

// Used implements crew.Process: what was told last, and the next time what is asked for now.
func (r *remote) Used() time.Duration {
	if !r.asked.Swap(true) {
		r.host.stream.tell(note{Do: look, Rank: r.i})
	}
	return time.Duration(r.used.Load())
}

// CloseOutput implements crew.Process.
func (r *remote) CloseOutput() {
	if r.out != nil {
		r.out.Close()
		r.err.Close()
	}
}

// close ends all that leads to the rank.
func (r *remote) close() {
	for _, c := range []net.Conn{r.pmi, r.ctl} {
		if c != nil {
			c.Close()
		}
	}
	r.conversed.Wait()
}
