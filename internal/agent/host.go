package agent

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gopgas/internal/crew"
)

// Config says how a host is reached.
type Config struct {
	Name    string   // of the host, for messages
	Command []string // what runs an agent there, with its standard input and output here; see Command
	Version string   // of this launcher; the agent's must be the same
	Ranks   int      // of the whole job, for messages
	Log     func(line string)
}

// Host is the launcher's end of an agent.
type Host struct {
	cfg     Config
	cmd     *exec.Cmd
	out     *os.File // what it writes
	stream  *stream
	said    *tail // on standard error by what carries the stream
	begun   time.Time
	greeted atomic.Bool

	answer chan note     // to start: started or refused
	use    chan note     // to finish: reaped
	lost   chan struct{} // closed when the stream has ended, after why was set
	why    string
	exited chan struct{} // closed when the command has ended; it is reaped last (A6)
	ranks  []*remote
	bound  []string
	byID   looks

	program *channel // to the host: the program; from it: what ranks left
	tick    chan note
	asked   uint64 // questions for the clock so far; the goroutine that asks looks at it
	clock   Clock
}

// Dial runs the command and waits for the agent's greeting until ctx ends. The error says what stood in the way and what helps. The command has
// a session of its own, so that neither a key nor the end of a terminal reaches it.
func Dial(ctx context.Context, c Config) (*Host, error) {
	h := &Host{
		cfg: c, cmd: exec.Command(c.Command[0], c.Command[1:]...), said: new(tail), begun: time.Now(),
		answer: make(chan note, 1), use: make(chan note, 1), tick: make(chan note, 1), lost: make(chan struct{}), exited: make(chan struct{}),
	}
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	theirIn, in, err1 := os.Pipe()
	out, theirOut, err2 := os.Pipe()
	errs, theirErr, err3 := os.Pipe()
	all := []*os.File{theirIn, in, out, theirOut, errs, theirErr}
	if err := cmp.Or(err1, err2, err3); err != nil {
		closeFiles(all...)
		return nil, fmt.Errorf("reach host %s: make pipes: %w%s", c.Name, err, crew.Cure(err, c.Ranks))
	}
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = theirIn, theirOut, theirErr
	err := h.cmd.Start()
	closeFiles(theirIn, theirOut, theirErr)
	if err != nil {
		closeFiles(in, out, errs)
		return nil, h.explain(trouble{start: err})
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		h.listen(errs)
	}()
	go func() {
		_ = crew.AwaitEnd(h.cmd.Process.Pid) // an error: reap waits
		close(h.exited)
	}()
	rd := bufio.NewReaderSize(out, MaxData)
	hello := make(chan trouble, 1)
	go func() { hello <- awaitGreeting(rd) }()
	var t trouble
	select {
	case t = <-hello:
		if t.ended && h.awaitExit(ctx, time.Second) { // it has said why
			select {
			case <-heard:
			case <-time.After(time.Second):
			}
		}
	case <-ctx.Done():
		t.late = time.Since(h.begun)
		if end, ok := ctx.Deadline(); ok { // the limit that was set, however long this process had no core
			t.late = max(end.Sub(h.begun), 1)
		}
	}
	if t == (trouble{protocol: Protocol, version: c.Version}) {
		h.greeted.Store(true)
		h.stream, h.out = newStream(rd, in), out
		go h.receive(errs)
		return h, nil
	}
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
	closeFiles(in, out, errs)
	<-h.exited
	_ = h.cmd.Wait()
	if t.late > 0 && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("reach host %s: %w", c.Name, context.Cause(ctx))
	}
	return nil, h.explain(t)
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func (h *Host) awaitExit(ctx context.Context, most time.Duration) bool {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-h.exited:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

// listen takes what the carrier of the stream says on standard error. Before the greeting it is kept, to explain a failure; later it is logged.
func (h *Host) listen(from io.Reader) {
	rd := bufio.NewReaderSize(from, 4<<10)
	for {
		line, err := rd.ReadSlice('\n')
		if len(line) > 0 {
			text := h.said.add(line)
			if h.greeted.Load() && h.cfg.Log != nil && text != "" {
				h.cfg.Log("host " + h.cfg.Name + ": " + text)
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// receive reads the stream to its end.
func (h *Host) receive(errs *os.File) {
	err := h.stream.run(h.hear)
	h.stream.close()
	h.awaitExit(context.Background(), time.Second) // it may say why
	h.why = "was lost: the connection to " + h.cfg.Name + " has ended"
	if !errors.Is(err, io.EOF) {
		h.why += " (" + err.Error() + ")"
	} else if text := h.said.last(); text != "" {
		h.why += " (" + text + ")"
	}
	close(h.lost)
	<-h.exited
	closeFiles(h.out, errs)
}

// hear acts on a note of the agent.
func (h *Host) hear(n note) error {
	switch n.Do {
	case started, refused:
		if n.Do == started {
			err := h.open(n)
			if errors.Is(err, ErrMalformed) {
				return err
			}
			if err != nil { // this process lacks something, not the host
				h.greeted.Store(false) // that its agent is left then is no news
				n = note{Do: refused, Text: err.Error()}
			}
		}
		return offer(h.answer, n)
	case reaped:
		return offer(h.use, n)
	case ended:
		if n.Rank < 0 || n.Rank >= len(h.ranks) || !h.ranks[n.Rank].over(*n.End) {
			return fmt.Errorf("%w: the agent says that rank %d of its host ended", ErrMalformed, n.Rank)
		}
	case seen:
		if n.Rank >= 0 && n.Rank < len(h.ranks) {
			h.ranks[n.Rank].used.Store(int64(n.Look.CPU))
			h.ranks[n.Rank].asked.Store(false)
		}
		h.byID.answer(n.ID, *n.Look)
	case clock:
		select {
		case h.tick <- n:
		default: // nobody has asked, or does not wait any more
		}
	default:
		return fmt.Errorf("%w: the agent says %q", ErrMalformed, n.Do)
	}
	return nil
}

// offer hands over an answer that comes once.
func offer(to chan note, n note) error {
	select {
	case to <- n:
		return nil
	default:
		return fmt.Errorf("%w: the agent says %q twice", ErrMalformed, n.Do)
	}
}

// Start has the agent carry out a plan. Ranks in fed, counted from the host's first, get their standard input through Stdin; the others have none. ship is a
// program here that is sent there and run instead of the plan's; empty: none. Call it once.
func (h *Host) Start(ctx context.Context, p crew.Plan, fed []int, ship string) error {
	h.ranks = make([]*remote, 0, p.Count)
	for i := range p.Count {
		h.ranks = append(h.ranks, &remote{host: h, i: i, ended: make(chan struct{})})
	}
	h.program = h.stream.open(channelOf(0, program), nil)
	if err := h.stream.trySend(note{Do: start, Plan: &p, Stdin: fed, Ship: ship != ""}); err != nil {
		return fmt.Errorf("start ranks on host %s: %w", h.cfg.Name, err)
	}
	unread := make(chan error, 1) // the program that is to be sent
	if ship != "" {
		go func() { // ends with the stream at the latest
			if err := h.ship(ship); err != nil {
				unread <- err
			}
		}()
	}
	select {
	case n := <-h.answer:
		if n.Do == refused {
			return refusal(h.cfg.Name, n)
		}
		h.bound = n.Bound
		if n.Text != "" && h.cfg.Log != nil {
			h.cfg.Log("host " + h.cfg.Name + ": " + n.Text)
		}
		return nil
	case err := <-unread:
		return fmt.Errorf("start ranks on host %s: read the program that is to be sent there: %w", h.cfg.Name, err)
	case <-h.lost:
		return fmt.Errorf("start ranks on host %s: it %s", h.cfg.Name, h.why)
	case <-ctx.Done():
		return fmt.Errorf("start ranks on host %s: %w", h.cfg.Name, context.Cause(ctx))
	}
}

// ship sends a program, and returns why it cannot be read. Its end is told only where it has been sent whole: the agent would run what it has.
func (h *Host) ship(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = io.Copy(h.program, f); err == nil {
		h.program.CloseWrite()
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) { // of the stream, whose end is told
		return nil
	}
	return err
}

// refusal is the error that an agent has sent.
func refusal(host string, n note) error {
	err := error(&refusedError{n.Text, faults()[n.Fault]})
	return fmt.Errorf("host %s: %w", host, err)
}

// refusedError is an error of another process, with the sentinel that it wrapped there.
type refusedError struct {
	text  string
	cause error
}

func (e *refusedError) Error() string { return e.text }
func (e *refusedError) Unwrap() error { return e.cause }

// open makes our ends of all channels of the ranks that were started. Their first bytes come after the note that is being heard.
func (h *Host) open(n note) error {
	if len(n.PIDs) != len(h.ranks) || len(n.Bound) != len(h.ranks) || len(h.ranks) == 0 {
		return fmt.Errorf("%w: %d processes started, wanted %d", ErrMalformed, len(n.PIDs), len(h.ranks))
	}
	for i, r := range h.ranks {
		if r.in != nil {
			return fmt.Errorf("%w: the agent says %q twice", ErrMalformed, n.Do)
		}
		if err := r.attach(n.PIDs[i]); err != nil {
			return fmt.Errorf("channels of the launcher to rank %d there: %w%s", i, err, crew.Cure(err, h.cfg.Ranks))
		}
	}
	return nil
}

// Name is the host's, as the user wrote it.
func (h *Host) Name() string { return h.cfg.Name }

// Group is the process group here of what carries the stream.
func (h *Host) Group() int { return h.cmd.Process.Pid }

// Bound says to which processors each rank was bound, in words that follow its name.
func (h *Host) Bound() []string { return h.bound }

// Processes are the started ranks, in their order.
func (h *Host) Processes() []crew.Process {
	out := make([]crew.Process, len(h.ranks))
	for i, r := range h.ranks {
		out[i] = r
	}
	return out
}

// Stdin is the standard input of a rank that Start was told to feed, counted from the host's first.
func (h *Host) Stdin(i int) io.WriteCloser { return h.ranks[i].in }

// Finish kills what is left on the host, ends the agent, and returns what the ranks used; nil where the host was lost, or has not said so when ctx ends. Call it last.
func (h *Host) Finish(ctx context.Context) []crew.Usage {
	h.stream.tell(note{Do: finish})
	t := time.NewTimer(killPatience + time.Second)
	defer t.Stop()
	var use []crew.Usage
	select {
	case n := <-h.use:
		if len(n.Usage) == len(h.ranks) {
			use = n.Usage
		}
	case <-h.lost:
	case <-t.C:
	case <-ctx.Done():
	}
	h.Close()
	return use
}

// Close ends the stream, on which the agent kills its ranks and ends, and waits for the end of the command: a moment, then it is killed.
func (h *Host) Close() {
	h.greeted.Store(false) // an agent that misses its launcher says so: here that is no news
	h.stream.close()
	if !h.awaitExit(context.Background(), 2*time.Second) {
		_ = syscall.Kill(-h.Group(), syscall.SIGKILL)
	}
	<-h.exited
	select {
	case <-h.lost:
	case <-time.After(time.Second): // somebody else holds the other end
		h.out.Close()
		<-h.lost
	}
	select {
	case <-h.stream.written:
	case <-time.After(time.Second): // and somebody who does not read
		h.stream.out.Close()
		<-h.stream.written
	}
	for _, r := range h.ranks {
		r.close()
	}
	_ = h.cmd.Wait() // how it ended has no bearing any more
}

// looks matches answers with questions.
type looks struct {
	mu      sync.Mutex // guards what follows
	next    uint64
	pending map[uint64]chan crew.Look // each has room for one answer
}

func (l *looks) ask() (uint64, chan crew.Look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	c := make(chan crew.Look, 1)
	if l.pending == nil {
		l.pending = map[uint64]chan crew.Look{}
	}
	l.pending[l.next] = c
	return l.next, c
}

func (l *looks) forget(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
}

func (l *looks) answer(id uint64, look crew.Look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.pending[id]; c != nil {
		delete(l.pending, id)
		c <- look
	}
}
