package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gopgas/internal/agent"
	"gopgas/internal/control"
	"gopgas/internal/crew"
)

// member is one rank as the loop sees it.
type member struct {
	rank    int
	host    string
	started time.Time
	hand    crew.Process
	client  *control.Client

	said   sync.WaitGroup // the goroutines that serve its sockets: done when all it ever sent has been read
	output sync.WaitGroup // the goroutines that copy its output

	end *RankEnd // nil: it runs; only the loop looks at it
}

// awaitEnd returns when the leader has ended and all that it sent before has been read (L3). Children of it may still
// hold the other ends of the sockets, so reading is told to stop at what is there.
func (p *member) awaitEnd(j *job) RankEnd {
	e, err := p.hand.Wait()
	if err != nil {
		j.log.logf("rank %d: %v", p.rank, err)
	}
	j.server.Ended(p.rank)
	p.hand.Settle()
	p.said.Wait()
	return RankEnd{Rank: p.rank, PID: p.hand.PID(), Exit: e.Exit, Signal: e.Signal, Lost: e.Lost, After: e.After}
}

// site is a host with the ranks that run there: a crew of this process, or one that an agent has.
type site struct {
	Host
	first int // of its ranks

	crew *crew.Crew
	far  *agent.Host
}

// here says whether rank runs on this machine, as a child of this process.
func (s *Spec) here(rank int) bool {
	for _, h := range s.Hosts {
		if rank -= h.Ranks; rank < 0 {
			return h.Agent == nil
		}
	}
	return false
}

// lookup finds the program: on this machine if it, or what is sent from it, runs here. The path is absolute unless every host is to search its own PATH.
func (s *Spec) lookup() (string, error) {
	needed := s.Ship
	for _, h := range s.Hosts {
		needed = needed || h.Agent == nil
	}
	switch {
	case needed:
		return crew.Lookup(s.Argv[0])
	case strings.Contains(s.Argv[0], "/"):
		return filepath.Abs(s.Argv[0])
	}
	return s.Argv[0], nil
}

// plan is what runs on a site.
func (j *job) plan(s *site) (crew.Plan, error) {
	p := crew.Plan{
		Job: j.name, Size: j.spec.N, First: s.first, Count: s.Ranks, Argv: j.spec.Argv, Wrap: j.spec.Wrap, Dir: j.spec.Dir,
		Env: j.spec.Env, Set: j.spec.Set, Stats: j.spec.Stats, Bind: j.spec.Bind,
	}
	if s.far == nil {
		if j.spec.Folder != "" {
			p.Set = append(slices.Clip(p.Set), j.spec.FolderEnv+"="+j.spec.Folder)
		}
		return p, nil
	}
	if j.spec.Folder != "" {
		p.Folder = j.spec.FolderEnv
	}
	p.Env = nil
	for _, v := range j.spec.Env {
		if strings.HasPrefix(v, "PGAS_") {
			p.Env = append(p.Env, v)
		}
	}
	var err error
	if p.Dir == "" {
		p.Dir, err = os.Getwd()
	} else {
		p.Dir, err = filepath.Abs(p.Dir)
	}
	if err != nil {
		return p, fmt.Errorf("working folder of the ranks on other hosts: %w", err)
	}
	if strings.Contains(p.Argv[0], "/") {
		path, err := filepath.Abs(p.Argv[0])
		if err != nil {
			return p, err
		}
		p.Argv = append([]string{path}, p.Argv[1:]...)
	}
	return p, nil
}

// begin starts the ranks of the site or none.
func (s *site) begin(ctx context.Context, j *job, program string) error {
	p, err := j.plan(s)
	if err != nil {
		return err
	}
	if s.far == nil {
		s.crew, err = crew.Start(p, func(r int) crew.Streams {
			return crew.Streams{In: j.in.files[r], Out: j.tty.output(r, j.spec.Stdout, j.taps[r][0]), Err: j.tty.output(r, j.spec.Stderr, j.taps[r][1])}
		}, j.guard)
		return err
	}
	var fed []int
	for _, r := range j.in.far {
		if r >= s.first && r < s.first+s.Ranks {
			fed = append(fed, r-s.first)
		}
	}
	if !j.spec.Ship {
		program = ""
	}
	if j.spec.Folder != "" {
		s.far.ReadClock(ctx)
	}
	return s.far.Start(ctx, p, fed, program)
}

// processes are the ranks, and to which processors they are bound.
func (s *site) processes() (all []crew.Process, bound []string) {
	if s.far != nil {
		return s.far.Processes(), s.far.Bound()
	}
	return s.crew.Processes(), s.crew.Bound
}

// reap takes back what the site's ranks have, once all have ended or were given up, and completes their ends. Nothing is waited for that another host is to bring
// when ctx has ended.
func (s *site) reap(ctx context.Context, j *job) {
	ranks := j.ranks[s.first:][:s.Ranks]
	ended := func(i int) bool { return ranks[i].end != nil }
	var use []crew.Usage
	var clock agent.Clock
	if s.far != nil {
		if j.spec.Folder != "" {
			s.far.ReadClock(ctx)
			clock = s.far.Clock()
			if err := s.far.Collect(ctx, j.spec.Folder); err != nil && ctx.Err() == nil {
				j.log.logf("%v", err)
			}
		}
		use = s.far.Finish(ctx)
	} else {
		use = s.crew.Reap(ended)
	}
	for i, p := range ranks {
		if !ended(i) { // it could not be killed: it is left to the system
			p.end = &RankEnd{Rank: p.rank, PID: p.hand.PID(), Signal: syscall.SIGKILL, After: time.Since(p.started)}
		}
		p.end.Clock = clock
		if use != nil {
			p.end.CPU, p.end.MaxRSS = use[i].CPU, use[i].MaxRSS
		}
	}
}

// undo takes back what begin has started, and what was killed; nothing of it runs on.
func (s *site) undo() {
	if s.crew != nil {
		s.crew.Reap(func(int) bool { return true })
	}
	if s.far != nil {
		s.far.Close()
	}
}

// kill ends the ranks of this machine that were started.
func (j *job) kill() {
	for _, s := range j.sites {
		if s.crew == nil {
			continue
		}
		for _, p := range s.crew.Processes() {
			p.Signal(syscall.SIGKILL)
		}
	}
}

// start starts all ranks or none: first every host is reached, then the ranks are started everywhere at once. sig is the signal that stopped it, if one did.
func (j *job) start(ctx context.Context, path string) (sig syscall.Signal, err error) {
	ctx, cancel := context.WithTimeout(ctx, j.spec.Reach)
	defer cancel()
	stop := j.heed(cancel)
	if j.guard, err = crew.StartGuard(j.spec.Scratch, j.name); err != nil {
		j.log.logf("%v: if the launcher itself is killed, children of ranks may be left", err)
	}
	err = j.each(func(s *site) (err error) {
		if s.Agent == nil {
			return nil
		}
		s.far, err = agent.Dial(ctx, agent.Config{
			Name: s.Name, Command: s.Agent, Version: j.spec.Version, Ranks: j.spec.N, Log: func(line string) { j.log.logf("%s", line) },
		})
		if err == nil {
			j.guard.Watch(s.far.Group())
		}
		return err
	})
	if err == nil {
		err = j.each(func(s *site) error { return s.begin(ctx, j, path) })
	}
	sig = stop()
	j.in.started()
	if err == nil && sig == 0 {
		err = j.muster()
	}
	if err == nil && sig == 0 {
		j.attach()
		return 0, nil
	}
	j.kill()
	j.guard.Dismiss()
	_ = j.each(func(s *site) error { s.undo(); return nil })
	j.tty.takeBack()
	j.in.end()
	close(j.over)
	return sig, errors.Join(err, j.routes.close())
}

// heed has INT, TERM and HUP end the start on other hosts, which may take long. What it returns ends that, and says which came.
func (j *job) heed(cancel func()) (stop func() syscall.Signal) {
	if len(j.spec.Hosts) == 1 && j.spec.Hosts[0].Agent == nil {
		return func() syscall.Signal { return 0 }
	}
	enough, came := make(chan struct{}), make(chan syscall.Signal, 1)
	go func() {
		for {
			select {
			case s := <-j.spec.Signals:
				if sig, ok := s.(syscall.Signal); ok && (sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP) {
					cancel()
					came <- sig
					return
				}
			case <-enough:
				came <- 0
				return
			}
		}
	}()
	return func() syscall.Signal {
		close(enough)
		return <-came
	}
}

// mostErrors is how many hosts are named that made trouble.
const mostErrors = 3

// each does something with all sites at once and returns the first errors, in the order of the hosts.
func (j *job) each(f func(*site) error) error {
	errs := make([]error, len(j.sites))
	var all sync.WaitGroup
	for i, s := range j.sites {
		all.Go(func() { errs[i] = f(s) })
	}
	all.Wait()
	var told []error
	more := 0
	for _, err := range errs {
		switch {
		case err == nil:
		case len(told) < mostErrors:
			told = append(told, err)
		default:
			more++
		}
	}
	if more > 0 {
		told = append(told, fmt.Errorf("and %d hosts more", more))
	}
	if len(told) == 1 {
		return told[0]
	}
	return errors.Join(told...)
}

// muster puts the started ranks in order and gives each what is its own.
func (j *job) muster() error {
	for _, s := range j.sites {
		all, bound := s.processes()
		for i, p := range all {
			m := &member{rank: s.first + i, host: s.Name, started: time.Now(), hand: p}
			j.ranks = append(j.ranks, m)
			if j.spec.Report {
				j.log.logf("rank %d on %s %s", m.rank, s.Name, bound[i])
			}
			if j.tty.of(m.rank) {
				if err := j.tty.give(m); err != nil {
					return fmt.Errorf("give rank %d the terminal: %w", m.rank, err)
				}
			}
		}
	}
	for _, r := range j.in.far {
		for _, s := range j.sites {
			if i := r - s.first; i >= 0 && i < s.Ranks {
				j.in.pipes = append(j.in.pipes, s.far.Stdin(i))
			}
		}
	}
	return nil
}
