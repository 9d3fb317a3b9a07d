package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gopgas/internal/crew"
)

// killPatience is how long a group may take to die of SIGKILL: a process in an uninterruptible sleep may take for ever.
const killPatience = 5 * time.Second

// Serve is the agent: it greets, starts the ranks that the launcher at the other end of in and out asks for, and returns when they have
// ended and nothing of them is left. environ is handed on to them; version is compared with the launcher's. When in ends before the launcher has
// said so, whatever the reason, all ranks are killed, and that is the error. The caller ends the agent early by closing in.
func Serve(in io.Reader, out io.WriteCloser, environ []string, version string) error {
	if _, err := fmt.Fprintf(out, "\n%s%d %s\n", greeting, Protocol, version); err != nil { // after what a shell may have printed without a newline
		return fmt.Errorf("greet the launcher: %w", err)
	}
	a := &server{environ: environ}
	a.stream = newStream(bufio.NewReaderSize(in, MaxData), out)
	a.stream.open(channelOf(0, program), nil)
	err := a.stream.run(a.hear)
	a.clear(errors.Is(err, errFinished))
	a.stream.close()
	<-a.stream.written
	a.stream.fail(err) // what still waits for it
	if errors.Is(err, errFinished) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the launcher has gone")
	}
	return fmt.Errorf("agent of pgasrun: %w", err)
}

// errFinished ends the reading of the stream when the launcher wants no more.
var errFinished = errors.New("finished")

// server is the agent of one job on one host.
type server struct {
	stream  *stream
	environ []string

	asked    bool           // for a start; the goroutine that reads the stream looks at it
	handed   bool           // what ranks have left; likewise
	starting sync.WaitGroup // the start, which may wait for the program

	mu      sync.Mutex // guards what follows
	cleared bool
	crew    *crew.Crew
	ranks   []crew.Process
	over    []bool // by rank: its leader has ended
	ends    sync.WaitGroup
	guard   *crew.Guard
	scratch string // a folder that goes with the job; empty: there is none
	left    string // a folder in it, for what ranks leave; empty: they are told of none
}

// hear acts on a note of the launcher. It is called by the goroutine that reads the stream and waits for nothing.
func (a *server) hear(n note) error {
	a.mu.Lock()
	ranks := a.ranks
	a.mu.Unlock()
	of := func() (crew.Process, bool) {
		if n.Rank < 0 || n.Rank >= len(ranks) {
			return nil, false
		}
		return ranks[n.Rank], true
	}
	switch n.Do {
	case start:
		if a.asked {
			return fmt.Errorf("%w: it starts twice", ErrMalformed)
		}
		a.asked = true
		for _, i := range n.Stdin {
			if i < 0 || i >= n.Plan.Count {
				return fmt.Errorf("%w: standard input for rank %d of %d", ErrMalformed, i, n.Plan.Count)
			}
		}
		a.starting.Go(func() { a.start(n) })
	case signal:
		for i, r := range ranks {
			if n.Rank < 0 || n.Rank == i {
				r.Signal(syscall.Signal(n.Signal))
			}
		}
	case stacks:
		if r, ok := of(); ok {
			r.AskStacks()
		}
	case look:
		if r, ok := of(); ok {
			seeing := r.Look(nil)
			a.stream.tell(note{Do: seen, Rank: n.Rank, ID: n.ID, Look: &seeing})
		}
	case clock:
		a.stream.tell(note{Do: clock, ID: n.ID, Clock: crew.Clock()})
	case collect:
		if ranks == nil || a.handed {
			return fmt.Errorf("%w: it collects what is not there, or twice", ErrMalformed)
		}
		a.handed = true
		a.mu.Lock()
		left := a.left
		a.mu.Unlock()
		go a.hand(left, a.stream.channel(channelOf(0, program))) // ends with the stream at the latest
	case finish:
		if ranks == nil {
			return fmt.Errorf("%w: it finishes what has not started", ErrMalformed)
		}
		return errFinished
	default:
		return fmt.Errorf("%w: the launcher says %q", ErrMalformed, n.Do)
	}
	return nil
}

// start starts the ranks and says how that went.
func (a *server) start(n note) {
	err := a.launch(n)
	if err == nil {
		return
	}
	answer := note{Do: refused, Text: err.Error()}
	for fault, sentinel := range faults() {
		if errors.Is(err, sentinel) {
			answer.Fault = fault
		}
	}
	a.stream.tell(answer)
}

// faults are the sentinels that a refusal carries, by name.
func faults() map[string]error {
	return map[string]error{"not-found": crew.ErrNotFound, "not-executable": crew.ErrNotExecutable}
}

func (a *server) launch(n note) (err error) {
	plan := *n.Plan
	if err := crew.CheckDir(plan.Dir); err != nil {
		return fmt.Errorf("%w; make it there, or name one that is on all hosts with --wdir", err)
	}
	scratch := ""
	if n.Ship || plan.Folder != "" {
		if scratch, err = a.folder(); err != nil {
			return fmt.Errorf("make a folder for the program, or for what ranks leave: %w", err)
		}
	}
	guard, unguarded := crew.StartGuard(scratch, plan.Job) // before there is anything in the folder: a program may come for long
	defer func() {
		if err != nil {
			guard.Dismiss()
		}
	}()
	if n.Ship {
		if err := a.receive(&plan); err != nil {
			return fmt.Errorf("receive the program: %w", err)
		}
	}
	if plan.Folder != "" {
		set, err := a.share(plan.Folder)
		if err != nil {
			return fmt.Errorf("make a folder for what ranks leave: %w", err)
		}
		plan.Set = append(plan.Set, set)
	}
	plan.Env = append(append([]string{}, a.environ...), plan.Env...)
	inputs, files, err := a.inputs(n.Stdin)
	if err != nil {
		return err
	}
	c, err := crew.Start(plan, func(rank int) crew.Streams { return crew.Streams{In: files[rank-plan.First]} }, guard)
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		for _, w := range inputs {
			w.Close()
		}
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.crew, a.ranks, a.over, a.guard = c, c.Processes(), make([]bool, plan.Count), guard
	if a.cleared { // the launcher has gone meanwhile
		a.kill()
	}
	told := note{Do: started, Bound: c.Bound}
	for _, r := range a.ranks {
		told.PIDs = append(told.PIDs, r.PID())
	}
	if unguarded != nil {
		told.Text = fmt.Sprintf("%v: if the agent itself is killed, children of ranks may be left", unguarded)
	}
	var attached []func()
	for i, r := range a.ranks {
		attached = append(attached, a.attach(i, r, inputs[i]))
	}
	a.stream.tell(told) // before anything of the ranks
	for _, run := range attached {
		run()
	}
	return nil
}

// receive takes the program from its channel into a folder of this host that goes with the job.
func (a *server) receive(plan *crew.Plan) error {
	dir, err := a.folder()
	if err != nil {
		return err
	}
	name := filepath.Join(dir, filepath.Base(plan.Argv[0]))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, a.stream.channel(channelOf(0, program)))
	plan.Argv[0] = name
	return errors.Join(err, f.Close())
}

// inputs makes the pipes of the ranks that are fed.
func (a *server) inputs(fed []int) (writers, readers map[int]*os.File, err error) {
	writers, readers = map[int]*os.File{}, map[int]*os.File{}
	for _, i := range fed {
		if readers[i], writers[i], err = os.Pipe(); err != nil {
			return nil, nil, fmt.Errorf("make a pipe for the input of rank %d of this host: %w", i, err)
		}
	}
	return writers, readers, nil
}

// attach opens the channels of a rank; what it returns begins to carry.
func (a *server) attach(i int, r crew.Process, input *os.File) func() {
	s := a.stream
	in := s.open(channelOf(i, stdin), nil)
	pmi, ctl := r.Talk()
	talk := [2]*channel{s.open(channelOf(i, pmiTalk), nil), s.open(channelOf(i, controlTalk), nil)}
	fromOut, fromErr := r.Output()
	out := s.open(channelOf(i, stdout), func() { fromOut.Close() })
	errs := s.open(channelOf(i, stderr), func() { fromErr.Close() })
	a.ends.Add(1)
	return func() {
		if input != nil {
			go carryInput(input, in)
		}
		go carryOutput(out, fromOut)
		go carryOutput(errs, fromErr)
		var spoken sync.WaitGroup
		spoken.Go(func() { converse(talk[0], pmi, pmi.Close) })
		spoken.Go(func() { converse(talk[1], ctl, ctl.Close) })
		go func() {
			defer a.ends.Done()
			e, err := r.Wait()
			if err != nil {
				e.Lost = err.Error()
			}
			r.Settle()
			spoken.Wait() // all that it said comes before its end
			a.mu.Lock()
			a.over[i] = true
			a.mu.Unlock()
			s.tell(note{Do: ended, Rank: i, End: &e})
		}()
	}
}

// carryInput feeds a rank until the launcher has no more, or the rank takes no more.
func carryInput(to *os.File, from *channel) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

func carryOutput(to *channel, from io.ReadCloser) {
	_, _ = io.Copy(to, from)
	to.CloseWrite()
	from.Close()
}

// converse carries both directions between a channel and a socket until both have ended. hangUp is called when the channel has no more for the socket. Who says
// no more is told no more: what he has not read nobody might ever read.
func converse(c *channel, conn net.Conn, hangUp func() error) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, c)
		_ = hangUp()
	})
	_, _ = io.Copy(c, conn)
	c.Close()
	conn.Close()
	back.Wait()
}

// clear ends what runs, takes the ranks' numbers back and tells what they used.
func (a *server) clear(tell bool) {
	a.mu.Lock()
	a.cleared = true
	a.kill()
	a.mu.Unlock()
	a.starting.Wait() // its transfers have ended with the stream
	a.mu.Lock()
	c := a.crew
	a.mu.Unlock()
	if c != nil {
		gone := make(chan struct{})
		go func() {
			a.ends.Wait()
			close(gone)
		}()
		t := time.NewTimer(killPatience)
		defer t.Stop()
		select {
		case <-gone:
		case <-t.C:
		}
		a.guard.Dismiss()
		use := c.Reap(func(i int) bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.over[i]
		})
		if tell {
			a.stream.tell(note{Do: reaped, Usage: use})
		}
	}
	if a.scratch != "" {
		_ = os.RemoveAll(a.scratch)
	}
}

// kill is called with the lock held.
func (a *server) kill() {
	for _, r := range a.ranks {
		r.Signal(syscall.SIGKILL)
	}
}
