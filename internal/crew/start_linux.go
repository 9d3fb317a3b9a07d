package crew

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// Crew is the started ranks of a plan.
type Crew struct {
	Bound []string // by rank of the plan: to which processors it was bound, as words that follow its name

	ranks []*process
	over  chan struct{} // closed when the thread that started them may go
}

// Start starts all ranks of a plan or none, watched by a guard, which it dismisses if none is left. streams gives those of each rank, which stay the caller's to close. Errors that are the program's fault wrap
// ErrNotFound or ErrNotExecutable.
func Start(p Plan, streams func(rank int) Streams, guard *Guard) (*Crew, error) {
	path, err := Lookup(p.Argv[0])
	if err != nil {
		return nil, err
	}
	cpus, err := usableCPUs(os.DirFS("/sys/devices/system"))
	if err != nil {
		return nil, fmt.Errorf("processors to bind ranks to: %w", err)
	}
	bound := bindings(p.Bind, p.Count, cpus)
	c := &Crew{over: make(chan struct{})}
	for _, ids := range bound {
		c.Bound = append(c.Bound, describeBinding(ids, cpus))
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: it ends with the goroutine, and with it its processors
		started <- c.startAll(&p, path, bound, streams, guard)
		<-c.over
	}()
	if err = <-started; err == nil {
		return c, nil
	}
	for _, r := range c.ranks {
		r.Signal(syscall.SIGKILL)
	}
	guard.Dismiss()
	c.Reap(func(int) bool { return true })
	if gone := CheckDir(p.Dir); gone != nil {
		return nil, gone // the kernel's error would be taken for one of the program
	}
	if errors.Is(err, syscall.ENOENT) {
		err = fmt.Errorf("%w: %w: the interpreter or loader that it names is missing", ErrNotExecutable, err)
	} else if errors.Is(err, syscall.ENOEXEC) {
		err = fmt.Errorf("%w: %w: it is no binary for this machine, and no script whose first line names what runs it, such as #!/bin/sh", ErrNotExecutable, err)
	} else if errors.Is(err, syscall.EACCES) {
		err = fmt.Errorf("%w: %w", ErrNotExecutable, err)
	}
	return nil, fmt.Errorf("start %s: %w", path, err)
}

// startAll starts the ranks from the calling thread, whose processors each has.
func (c *Crew) startAll(p *Plan, path string, bound [][]int, streams func(rank int) Streams, guard *Guard) error {
	for i := range p.Count {
		rank, at := p.First+i, path
		if words := p.Wrap[rank]; words != nil {
			var err error
			if at, err = Lookup(words[0]); err != nil {
				return fmt.Errorf("the command round rank %d: %w", rank, err)
			}
		}
		if err := bindThread(bound[i]); err != nil {
			return err
		}
		guard.begin(rank)
		r, err := startRank(p, at, rank, streams(rank))
		if err != nil {
			return err
		}
		c.ranks = append(c.ranks, r)
		guard.Watch(r.PID())
	}
	return nil
}

// Processes are the ranks, in their order.
func (c *Crew) Processes() []Process {
	out := make([]Process, len(c.ranks))
	for i, r := range c.ranks {
		out[i] = r
	}
	return out
}

// Reap takes the numbers of the ranks back and closes our ends of all that leads to them, once. ended says which leaders have ended: it waits for those. One that
// cannot be killed is left to the system. Usage is by rank of the plan.
func (c *Crew) Reap(ended func(i int) bool) []Usage {
	use := make([]Usage, len(c.ranks))
	for i, r := range c.ranks {
		if ended(i) {
			use[i] = r.reap()
		} else {
			_ = r.proc.Release()
		}
		r.closeAll()
	}
	close(c.over)
	return use
}
