package launch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// killPatience is how long a group may take to die of SIGKILL: a process in an uninterruptible sleep may take for ever.
const killPatience = 5 * time.Second

// event is something that happened to the job.
type event struct {
	kind evKind
	rank int
	code int
	text string
	end  RankEnd
}

type evKind uint8

const (
	evEnd    evKind = iota // rank's leader has ended: end
	evAbort                // rank asked for the end of the job: code, text
	evReport               // the hang report has been gathered: text
)

// post hands an event to the loop; after the job it is dropped.
func (j *job) post(e event) {
	select {
	case j.events <- e:
	case <-j.over:
	}
}

// Run starts the job and returns when it has ended and nothing of it is left. The error is non-nil where nothing
// could be started, or ctx ended; how the ranks ended, well or not, is in the Result. Run may be called by several
// goroutines at once, for different jobs.
func Run(ctx context.Context, s Spec) (Result, error) {
	if err := s.check(); err != nil {
		return Result{}, err
	}
	path, err := Lookup(s.Argv[0])
	if err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	begin := time.Now()
	j, err := newJob(&s)
	if err != nil {
		return Result{}, err
	}
	if s.Verbose {
		j.log.logf("job %s: %d ranks of %s", j.name, s.N, path)
	}
	if err := j.start(path); err != nil {
		return Result{}, fmt.Errorf("start %s: %w", path, err)
	}
	err = j.loop(ctx)
	j.clear()
	j.tty.takeBack()
	close(j.over)
	err = errors.Join(err, j.routes.close(), j.outlet.lost())
	res := Result{Job: j.name, Code: j.judge.code, Cause: j.judge.cause, Elapsed: time.Since(begin)}
	for _, p := range j.ranks {
		res.Ranks = append(res.Ranks, *p.end)
		j.mu.Lock()
		if st, ok := j.stats[p.rank]; ok {
			res.Stats = append(res.Stats, st)
		}
		j.mu.Unlock()
	}
	if s.Verbose {
		for _, e := range res.Ranks {
			how, _ := howEnded(e, j.server.State(e.Rank))
			j.log.logf("rank %d %s after %s, %s of CPU, at most %.1f MiB", e.Rank, how, seconds(e.After), seconds(e.CPU), float64(e.MaxRSS)/(1<<20))
		}
	}
	return res, err
}

// unset is a timer that does not run yet.
func unset() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// loop runs until every leader has ended, or could not be made to. It returns ctx's error if that ended the job.
func (j *job) loop(ctx context.Context) (err error) {
	begin := time.Now()
	limit, grace, hopeless, remind := unset(), unset(), unset(), unset()
	defer limit.Stop()
	defer grace.Stop()
	defer hopeless.Stop()
	defer remind.Stop()
	if j.spec.Timeout > 0 {
		limit.Reset(j.spec.Timeout)
	}
	stopped := ctx.Done()
	reporting, timedOut := false, false
	ask := func(why string) {
		if !reporting {
			reporting = true
			j.gather(why, time.Since(begin))
		}
	}
	act := func(acts []action) {
		for _, a := range acts {
			switch a.do {
			case say:
				j.log.logf("%s", a.text)
			case tellGone:
				for _, p := range j.ranks {
					if p.end == nil && p.rank != a.rank {
						_ = p.client.Gone(a.rank, a.text) // programs that do not listen are told nothing
					}
				}
			case forward:
				j.signal(a.sig)
			case interrupt:
				for r := range j.spec.Wrap {
					j.ranks[r].signal(syscall.SIGINT)
				}
			case endAll:
				j.signal(syscall.SIGTERM)
				j.signal(syscall.SIGCONT) // a stopped process does not hear the first
				grace.Reset(j.spec.Grace)
			case startGrace:
				grace.Reset(j.spec.Grace)
			case remindSoon:
				remind.Reset(j.spec.Grace)
			case killAll:
				j.signal(syscall.SIGKILL)
				hopeless.Reset(killPatience)
			case report:
				ask("SIGQUIT; another one ends the ranks")
			}
		}
	}
	for alive := len(j.ranks); alive > 0; {
		select {
		case e := <-j.events:
			switch e.kind {
			case evEnd:
				alive--
				j.ranks[e.rank].end = &e.end
				if j.tty.of(e.rank) {
					j.tty.takeBack()
				}
				state := j.server.State(e.rank)
				act(j.judge.rankEnded(e.end, state))
				how, _ := howEnded(e.end, state)
				if j.spec.Watch != nil {
					j.spec.Watch.Ended(e.rank, how+" after "+seconds(e.end.After))
				}
				j.server.Gone(e.rank, how) // only now: what follows from it comes second
			case evAbort:
				act(j.judge.aborted(e.rank, e.code, e.text, time.Since(j.ranks[e.rank].started)))
			case evReport:
				reporting = false
				j.log.write([]byte(e.text))
				if timedOut {
					act(j.judge.timedOut())
				}
			}
		case sig := <-j.spec.Signals:
			if s, ok := sig.(syscall.Signal); ok {
				act(j.judge.signalled(s))
			}
		case <-limit.C:
			timedOut = true
			ask("the time limit")
		case <-stopped:
			stopped, err = nil, ctx.Err()
			act(j.judge.stopped(err))
		case <-grace.C:
			act(j.judge.graceOver())
		case <-remind.C:
			act(j.judge.stillRunning())
		case <-hopeless.C:
			for _, p := range j.ranks {
				if p.end == nil {
					alive--
					j.log.logf("rank %d, process %d, does not end even when killed: %s", p.rank, p.pid(), describe(p.pid()))
				}
			}
		}
	}
	return err
}

// signal sends sig to the groups of all ranks, also of those whose leader has ended: its children may run.
func (j *job) signal(sig syscall.Signal) {
	for _, p := range j.ranks {
		p.signal(sig)
	}
}

// clear ends what the leaders left behind, reads the output to its end, and reaps.
func (j *job) clear() {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for _, p := range j.ranks {
			p.output.Wait()
		}
	}()
	select {
	case <-drained:
	default:
		j.drain(drained)
	}
	j.signal(syscall.SIGKILL) // L1: those that run without our pipes
	if j.guard != nil {
		j.guard.dismiss()
	}
	j.in.end()
	for _, p := range j.ranks {
		if p.end == nil { // it could not be killed: leave it to the system
			p.end = &RankEnd{Rank: p.rank, PID: p.pid(), Signal: syscall.SIGKILL, After: time.Since(p.started)}
			_ = p.proc.Release()
		} else {
			p.reap(p.end)
		}
		p.closeAll()
	}
	<-drained // closed pipes end the last readers
}

// drain waits for the end of the output. What still prints after a moment is a child that a rank left behind: it is asked
// to end, then killed.
func (j *job) drain(drained <-chan struct{}) {
	const moment = 50 * time.Millisecond // between the end of the last leader and the last bytes in its pipe
	wait := func(d time.Duration) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-drained:
			return true
		case <-t.C:
			return false
		}
	}
	if wait(moment) {
		return
	}
	j.signal(syscall.SIGTERM)
	j.signal(syscall.SIGCONT)
	if wait(j.spec.Grace) {
		return
	}
	j.signal(syscall.SIGKILL)
	for { // all writers of the groups are dead: what remains is in the pipes, or the reader is slow
		before := j.outlet.writes.Load()
		if wait(killPatience) {
			return
		}
		if before%2 == 0 && j.outlet.writes.Load() == before {
			break
		}
	}
	for _, p := range j.ranks { // a process outside of the groups holds a pipe and is silent
		p.closeOutput()
	}
}

// gather asks every rank what it waits for and posts the hang report.
func (j *job) gather(why string, after time.Duration) {
	all := make([]suspect, len(j.ranks))
	for r, p := range j.ranks {
		all[r] = suspect{rank: r, pid: p.pid()}
		if p.end != nil {
			how, _ := howEnded(*p.end, j.server.State(r))
			all[r].ended = how + " after " + seconds(p.end.After)
		}
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		var wg sync.WaitGroup
		for r := range all {
			if all[r].ended != "" {
				continue
			}
			wg.Go(func() {
				waits, err := j.ranks[r].client.Waits(ctx)
				all[r].waits, all[r].answered = waits, err == nil
				if err != nil {
					all[r].seen = describe(all[r].pid)
				}
			})
		}
		wg.Wait()
		j.post(event{kind: evReport, text: hangReport(why, after, all)})
	}()
}
