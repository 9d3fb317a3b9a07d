package launch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"gopgas/internal/control"
	"gopgas/internal/crew"
	"gopgas/internal/pmi"
	"gopgas/internal/pmiserver"
)

// job is a running job.
type job struct {
	spec   *Spec
	name   string
	server *pmiserver.Server
	judge  judge
	sites  []*site
	ranks  []*member
	in     *stdin
	tty    *terminal // of a wrapped rank; nil: nobody's
	guard  *crew.Guard
	events chan event

	screens        screens
	stdout, stderr sink
	log            logger
	routes         routes
	taps           [][2][]tap // by rank: of its standard output and error

	over chan struct{} // closed when Run is done: posts are dropped

	mu    sync.Mutex // guards what follows
	stats map[int]control.Stats
}

// newJob prepares everything that needs no rank.
func newJob(s *Spec) (*job, error) {
	var id [8]byte
	rand.Read(id[:])
	secret := make([]byte, pmi.SecretSize)
	rand.Read(secret)
	j := &job{
		spec: s, name: "pgas-" + hex.EncodeToString(id[:]),
		judge:  judge{noKill: s.NoKill, wrapped: map[int]bool{}, timeout: s.Timeout, grace: s.Grace},
		events: make(chan event, s.N+16), over: make(chan struct{}),
		stats: map[int]control.Stats{},
	}
	j.stdout, j.stderr, j.log.to = j.screens.sink(s.Stdout), j.screens.sink(s.Stderr), j.screens.sink(s.Log)
	j.routes.own = []sink{j.stdout, j.stderr}
	for _, to := range j.screens {
		to.o.unread = func() { j.post(event{kind: evUnread}) }
	}
	for r := range s.Wrap {
		j.judge.wrapped[r] = true
	}
	blocks := []int{}
	for _, h := range s.Hosts {
		j.sites = append(j.sites, &site{Host: h, first: len(j.judge.hosts)})
		j.judge.hosts = append(j.judge.hosts, slices.Repeat([]string{h.Name}, h.Ranks)...)
		blocks = append(blocks, h.Ranks)
	}
	var err error
	j.server, err = pmiserver.New(pmiserver.Config{
		Size: s.N, KVSName: j.name, Linger: time.Second, Mapping: pmiserver.Mapping(blocks),
		Preset:  map[string]string{pmi.SecretKey: hex.EncodeToString(secret)}, // L5
		OnAbort: func(rank, code int, text string) { j.post(event{kind: evAbort, rank: rank, code: code, text: text}) },
	})
	if err != nil {
		return nil, err
	}
	if err := j.prepare(); err != nil {
		return nil, errors.Join(err, j.routes.close())
	}
	j.tty = openTerminal(s)
	if j.in, err = openStdin(s, j.tty); err != nil {
		err = fmt.Errorf("open the ranks' standard input: %w%s", err, crew.Cure(err, s.N))
		return nil, errors.Join(err, j.routes.close())
	}
	return j, nil
}

// prepare opens the files of the output.
func (j *job) prepare() error {
	for r := range j.spec.N {
		at := place{rank: r, size: j.spec.N, host: j.judge.hosts[r], job: j.name}
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
	return nil
}

// attach starts the goroutines that serve the ranks.
func (j *job) attach() {
	for r, p := range j.ranks {
		pmi, ctl := p.hand.Talk()
		p.client = control.NewClient(ctl, func(s control.Stats) {
			s.Rank = r // it is known by its channel, not by what it says
			j.mu.Lock()
			defer j.mu.Unlock()
			j.stats[r] = s
		})
		stdout, stderr := p.hand.Output()
		for i, from := range []io.Reader{stdout, stderr} {
			if from == nil { // it writes to the terminal itself
				continue
			}
			taps := j.taps[r][i]
			p.output.Go(func() {
				if j.spec.Wrap[r] != nil {
					copyAsItComes(taps, from)
				} else {
					copyLines(taps, from)
				}
			})
		}
		p.said.Go(func() {
			if err := j.server.Serve(r, pmi); err != nil {
				j.log.logf("%s", printable(err.Error()))
			}
		})
		p.said.Go(func() {
			if err := p.client.Run(); err != nil {
				j.log.logf("rank %d on its control channel: %s", r, printable(err.Error()))
			}
		})
		if w := j.spec.Watch; w != nil {
			w.Started(r, p.hand.PID())
			p.said.Go(func() { p.client.Watch(j.spec.WatchEvery, func(s control.Sample) { w.Sampled(r, s) }) })
		}
		go func() { j.post(event{kind: evEnd, rank: r, end: p.awaitEnd(j)}) }()
		if j.spec.Verbose {
			j.log.logf("rank %d is process %d", r, p.hand.PID())
		}
	}
	go j.in.feed()
}
