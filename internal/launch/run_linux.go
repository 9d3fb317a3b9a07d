package launch

import (
	"context"
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// suspendDelay lets the order to stop reach the ranks of other hosts before the launcher itself stops.
const suspendDelay = 100 * time.Millisecond

// killPatience is how long a group may take to die of SIGKILL: a process in an uninterruptible sleep may take for ever.
const killPatience = 5 * time.Second

// event is something that happened to the job.
type event struct {
	kind evKind
	rank int
	code int
	text string
	end  RankEnd

	quiet []int
	all   []suspect
}

type evKind uint8

const (
	evEnd    evKind = iota // rank's leader has ended: end
	evAbort                // rank asked for the end of the job: code, text
	evReport               // the hang report has been gathered: text, and quiet: who told of no wait and can print its stacks
	evUnread               // who read the output has gone
	evIdle                 // the ranks, none of which computed, have been asked what they wait for: all
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
	path, err := s.lookup()
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
	if sig, err := j.start(ctx, path); sig != 0 {
		cause := "stopped by " + unix.SignalName(sig) + " before all ranks had started; none is left"
		j.log.logf("%s", cause)
		return Result{Job: j.name, Code: 128 + int(sig), Cause: cause, Elapsed: time.Since(begin)}, nil
	} else if err != nil {
		return Result{}, err
	}
	err = j.loop(ctx)
	r := reader{job: j, ctx: ctx, what: "the end of the ranks' output", done: "read", grace: unset()}
	defer r.grace.Stop()
	j.clear(&r)
	j.tty.takeBack()
	close(j.over)
	res := Result{Job: j.name, Elapsed: time.Since(begin)}
	for _, p := range j.ranks {
		p.end.Host = p.host
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
	r.await(j.log.written())
	if err == nil && r.gone {
		err = ctx.Err()
	}
	res.Code, res.Cause = j.judge.code, j.judge.cause
	return res, errors.Join(err, j.routes.close(), j.screens.lost())
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
	limit, grace, hopeless, remind, suspend := unset(), unset(), unset(), unset(), unset()
	defer limit.Stop()
	defer grace.Stop()
	defer hopeless.Stop()
	defer remind.Stop()
	defer suspend.Stop()
	if j.spec.Timeout > 0 {
		limit.Reset(j.spec.Timeout)
	}
	vigil := vigil{every: j.spec.WarnAfter, told: len(j.spec.Wrap) > 0} // who debugs a rank knows that the others wait
	look := time.NewTicker(j.spec.WarnAfter)
	defer look.Stop()
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
			case suspendSoon:
				suspend.Reset(suspendDelay)
			case stayAwake:
				suspend.Stop()
			case interrupt:
				for r := range j.spec.Wrap {
					j.ranks[r].hand.Signal(syscall.SIGINT)
				}
			case askStacks:
				j.ranks[a.rank].hand.AskStacks()
			case endAll:
				for _, p := range j.ranks {
					if !j.judge.asked[p.rank] {
						p.hand.Signal(syscall.SIGTERM)
						p.hand.Signal(syscall.SIGCONT) // a stopped process does not hear the first
					}
				}
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
			case evUnread:
				act(j.judge.unread())
			case evIdle:
				if line, ok := vigil.judge(e.all); ok && !reporting && !j.judge.ending {
					j.log.logf("%s", line)
				}
			case evReport:
				reporting = false
				j.log.write([]byte(e.text))
				if timedOut {
					act(j.judge.timedOut(e.quiet))
				}
			}
		case sig := <-j.spec.Signals:
			if s, ok := sig.(syscall.Signal); ok {
				act(j.judge.signalled(s))
			}
		case <-look.C:
			if !reporting && vigil.idle(j.used()) {
				ask := j.ask()
				go func() { j.post(event{kind: evIdle, all: ask()}) }()
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
		case <-suspend.C:
			if j.spec.Suspend != nil {
				j.spec.Suspend()
			}
		case <-hopeless.C:
			alive -= j.giveUp()
		}
	}
	return err
}

// signal sends sig to the groups of all ranks, also of those whose leader has ended: its children may run.
func (j *job) signal(sig syscall.Signal) {
	for _, p := range j.ranks {
		p.hand.Signal(sig)
	}
}
