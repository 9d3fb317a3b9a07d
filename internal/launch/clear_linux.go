package launch

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// clear ends what the leaders left behind, reads the output to its end, and reaps.
func (j *job) clear(r *reader) {
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
		j.drain(r, drained)
	}
	j.signal(syscall.SIGKILL) // L1: those that run without our pipes
	j.guard.Dismiss()
	j.in.end()
	j.reap(r)
	r.await(drained) // closed pipes end the last of those who read them
}

// reap takes back what the ranks have. What those on other hosts have left is waited for as who reads the output is: an INT or TERM leaves the hosts the grace, a
// second one nothing.
func (j *job) reap(r *reader) {
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	var far sync.WaitGroup
	for _, s := range j.sites {
		if s.far != nil {
			far.Go(func() { s.reap(ctx, j) })
		}
	}
	for _, s := range j.sites {
		if s.far == nil {
			s.reap(ctx, j)
		}
	}
	brought := make(chan struct{})
	go func() {
		far.Wait()
		close(brought)
	}()
	hosts := reader{job: j, ctx: r.ctx, what: "what other hosts were to bring", done: "here", grace: unset(), told: r.told, gone: r.gone && r.told != 0}
	defer hosts.grace.Stop()
	if r.told != 0 {
		hosts.grace.Reset(j.spec.Grace)
	}
	for !hosts.gone && !hosts.awaitFor(brought, killPatience) {
	}
	enough()
	<-brought
}

// drain waits for the end of the output. What still prints after a moment is a child that a rank left behind: it is asked
// to end, then killed.
func (j *job) drain(r *reader, drained <-chan struct{}) {
	const moment = 50 * time.Millisecond // between the end of the last leader and the last bytes in its pipe
	if r.awaitFor(drained, moment) {
		return
	}
	j.signal(syscall.SIGTERM)
	j.signal(syscall.SIGCONT)
	if r.awaitFor(drained, j.spec.Grace) {
		return
	}
	j.signal(syscall.SIGKILL)
	for !r.gone { // all writers of the groups are dead: what remains is in the pipes, or the reader is slow
		before, waiting := j.screens.writes()
		if r.awaitFor(drained, killPatience) {
			return
		}
		if now, _ := j.screens.writes(); now == before && (!waiting || r.late()) {
			break
		}
	}
	for _, p := range j.ranks { // a process outside of the groups holds a pipe and is silent, or nobody reads what it says
		p.hand.CloseOutput()
	}
}

// reader is who reads what a job says whose ranks have ended, or brings what they have left. He may take as long as he likes, unless the launcher is told to end.
type reader struct {
	job   *job
	ctx   context.Context
	what  string         // is lost without him
	done  string         // what is to become of it
	told  syscall.Signal // INT or TERM that came meanwhile
	grace *time.Timer    // that it leaves him
	gone  bool           // he is waited for no more
}

// await waits until done is closed because he has read to the end, or he is waited for no more.
func (r *reader) await(done <-chan struct{}) {
	for {
		before := r.job.moved()
		if r.awaitFor(done, killPatience) || r.gone {
			return
		}
		if r.late() && r.job.moved() == before {
			r.leave()
		}
	}
}

// awaitFor does so for d at most and says whether done was closed.
func (r *reader) awaitFor(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for !r.gone {
		over := false
		select {
		case <-done:
			return true
		case <-t.C:
			return false
		case s := <-r.job.spec.Signals:
			over = r.signalled(s)
		case <-r.grace.C:
			over = true
		}
		select {
		case <-done: // nothing is lost
			return true
		default:
		}
		if over {
			r.leave()
		}
	}
	return false
}

// signalled judges a signal as ranks would be treated that run: an INT or TERM leaves the grace time, the second of them nothing, which it reports.
func (r *reader) signalled(s os.Signal) (over bool) {
	sig, ok := s.(syscall.Signal)
	if !ok || sig != syscall.SIGINT && sig != syscall.SIGTERM {
		return false
	}
	r.told = sig
	if r.job.judge.stops++; r.job.judge.stops > 1 {
		return true
	}
	r.grace.Reset(r.job.spec.Grace)
	return false
}

// late says whether the job should have ended by now: he is waited for as long as he reads.
func (r *reader) late() bool {
	j := &r.job.judge
	return r.ctx.Err() != nil || j.code == CodeTimeout || j.stops > 1 || j.forwarded == syscall.SIGTERM
}

// leave waits for him no more.
func (r *reader) leave() {
	r.gone = true
	code, why := CodeStopped, "nobody reads"
	if r.told != 0 {
		code, why = 128+int(r.told), unix.SignalName(r.told)+" came before it was "+r.done
	} else if r.job.judge.forwarded != 0 {
		code = 128 + int(r.job.judge.forwarded)
	}
	cause := r.what + " is lost: " + why
	r.job.judge.decide(code, cause)
	r.job.log.logf("%s", cause)
}

// moved counts what has been written so far.
func (j *job) moved() uint64 {
	n, _ := j.screens.writes()
	for _, file := range j.routes.files {
		n += file.to.o.writes.Load()
	}
	return n
}
