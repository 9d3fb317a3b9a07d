package launch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"gopgas/internal/control"
	"gopgas/internal/pmi"
	"gopgas/internal/pmiserver"
)

// job is a running job.
type job struct {
	spec   *Spec
	name   string
	server *pmiserver.Server
	judge  judge
	ranks  []*process
	in     *stdin
	tty    *terminal // of a wrapped rank; nil: nobody's
	guard  *guard
	events chan event

	outlet              *outlet
	stdout, stderr, log sink
	routes              routes
	taps                [][2][]tap // by rank: of its standard output and error
	bound               [][]int    // by rank: its processors; nil: all

	over chan struct{} // closed when Run is done: the locked thread may go, and posts are dropped

	mu    sync.Mutex // guards what follows
	stats map[int]control.Stats
}

// newJob prepares everything that needs no rank.
func newJob(s *Spec) (*job, error) {
	var id [8]byte
	rand.Read(id[:])
	secret := make([]byte, pmi.SecretSize)
	rand.Read(secret)
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	out := new(outlet)
	j := &job{
		spec: s, name: "pgas-" + hex.EncodeToString(id[:]),
		judge:  judge{host: host, noKill: s.NoKill, wrapped: map[int]bool{}, timeout: s.Timeout, grace: s.Grace},
		events: make(chan event, s.N+16), over: make(chan struct{}),
		outlet: out, stdout: sink{out, s.Stdout}, stderr: sink{out, s.Stderr}, log: sink{out, s.Log},
		stats: map[int]control.Stats{},
	}
	for r := range s.Wrap {
		j.judge.wrapped[r] = true
	}
	j.server, err = pmiserver.New(pmiserver.Config{
		Size: s.N, KVSName: j.name, Linger: time.Second,
		Preset:  map[string]string{pmi.SecretKey: hex.EncodeToString(secret)}, // L5
		OnAbort: func(rank, code int, text string) { j.post(event{kind: evAbort, rank: rank, code: code, text: text}) },
	})
	if err != nil {
		return nil, err
	}
	if err := j.prepare(host); err != nil {
		return nil, errors.Join(err, j.routes.close())
	}
	j.tty = openTerminal(s)
	j.in, err = openStdin(s, j.tty)
	return j, err
}

// prepare opens the files of the output and chooses the ranks' processors.
func (j *job) prepare(host string) error {
	for r := range j.spec.N {
		at := place{rank: r, size: j.spec.N, host: host, job: j.name}
		var taps [2][]tap
		for i, screen := range []sink{j.stdout, j.stderr} {
			at.stream = [...]string{"out", "err"}[i]
			var err error
			if taps[i], err = j.routes.route(j.spec, at, screen); err != nil {
				return err
			}
		}
		j.taps = append(j.taps, taps)
	}
	cpus, err := usableCPUs(os.DirFS("/sys/devices/system"))
	if err != nil {
		return fmt.Errorf("processors to bind ranks to: %w", err)
	}
	j.bound = bindings(j.spec.Bind, j.spec.N, cpus)
	for r := range j.spec.N {
		if j.spec.Report {
			j.log.logf("rank %d on %s %s", r, host, describeBinding(j.bound[r], cpus))
		}
	}
	return nil
}

// start starts all ranks or none. The thread that starts them stays until the job is over.
func (j *job) start(path string) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: it ends with the goroutine, and with it its processors
		var err error
		for r := range j.spec.N {
			var p *process
			at := path
			if words := j.spec.Wrap[r]; words != nil {
				if at, err = Lookup(words[0]); err != nil {
					err = fmt.Errorf("the command round rank %d: %w", r, err)
					break
				}
			}
			// The child has the processors of the thread that starts it.
			if err = bindThread(j.bound[r]); err != nil {
				break
			}
			screen := [2]*os.File{j.tty.output(r, j.spec.Stdout, j.taps[r][0]), j.tty.output(r, j.spec.Stderr, j.taps[r][1])}
			if p, err = startRank(j.spec, at, j.name, r, j.in.files[r], screen); err != nil {
				break
			}
			j.ranks = append(j.ranks, p)
			if j.tty.of(r) {
				if err = j.tty.give(p); err != nil {
					err = fmt.Errorf("give rank %d the terminal: %w", r, err)
					break
				}
			}
		}
		started <- err
		<-j.over
	}()
	err := <-started
	j.in.started()
	if err == nil {
		j.attach()
		return nil
	}
	for _, p := range j.ranks {
		p.signal(syscall.SIGKILL)
		p.reap(&RankEnd{})
		p.closeAll()
	}
	j.tty.takeBack()
	j.in.end()
	close(j.over)
	if errors.Is(err, syscall.ENOENT) {
		err = fmt.Errorf("%w: %w: the interpreter or loader that it names is missing", ErrNotExecutable, err)
	} else if isErrno(err, syscall.ENOEXEC) || isErrno(err, syscall.EACCES) {
		err = fmt.Errorf("%w: %w", ErrNotExecutable, err)
	}
	return err
}

// attach starts the goroutines that serve the ranks.
func (j *job) attach() {
	groups := make([]int, len(j.ranks))
	for r, p := range j.ranks {
		groups[r] = p.pid()
		p.client = control.NewClient(p.ctl, func(s control.Stats) {
			s.Rank = r // it is known by its channel, not by what it says
			j.mu.Lock()
			defer j.mu.Unlock()
			j.stats[r] = s
		})
		for from, taps := range map[*os.File][]tap{p.out: j.taps[r][0], p.err: j.taps[r][1]} {
			if from == nil { // it writes to the terminal itself
				continue
			}
			p.output.Go(func() {
				if j.spec.Wrap[r] != nil {
					copyAsItComes(taps, from)
				} else {
					copyLines(taps, from)
				}
			})
		}
		p.said.Go(func() {
			if err := j.server.Serve(r, p.pmi); err != nil {
				j.log.logf("%s", printable(err.Error()))
			}
		})
		p.said.Go(func() {
			if err := p.client.Run(); err != nil {
				j.log.logf("rank %d on its control channel: %s", r, printable(err.Error()))
			}
		})
		if w := j.spec.Watch; w != nil {
			w.Started(r, p.pid())
			p.said.Go(func() { p.client.Watch(j.spec.WatchEvery, func(s control.Sample) { w.Sampled(r, s) }) })
		}
		go func() {
			e, err := p.awaitEnd(func() { j.server.Ended(r) })
			if err != nil {
				j.log.logf("rank %d: %v", r, err)
			}
			j.post(event{kind: evEnd, rank: r, end: e})
		}()
		if j.spec.Verbose {
			j.log.logf("rank %d is process %d", r, p.pid())
		}
	}
	go j.in.feed()
	g, err := startGuard(groups, j.spec.Scratch)
	if err != nil {
		j.log.logf("%v: if the launcher itself is killed, children of ranks may be left", err)
	}
	j.guard = g
}

func isErrno(err error, want syscall.Errno) bool { return errors.Is(err, want) }
