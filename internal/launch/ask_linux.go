package launch

import (
	"context"
	"sync"
	"time"
)

// gather posts the hang report.
func (j *job) gather(why string, after time.Duration) {
	ask := j.ask()
	go func() {
		all := ask()
		var quiet []int
		for r, s := range all {
			if s.quiet() && s.stacks {
				quiet = append(quiet, r)
			}
		}
		j.post(event{kind: evReport, text: hangReport(why, after, all), quiet: quiet})
	}()
}

// ask is called by the loop; what it returns, called once by any goroutine, asks every rank that runs what it waits for.
func (j *job) ask() func() []suspect {
	all := make([]suspect, len(j.ranks))
	for r, p := range j.ranks {
		all[r] = suspect{rank: r, pid: p.hand.PID(), host: p.host}
		if p.end != nil {
			how, _ := howEnded(*p.end, j.server.State(r))
			all[r].ended = how + " after " + seconds(p.end.After)
		}
	}
	return func() []suspect {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		late, enough := context.WithTimeout(context.Background(), 2*answerTime) // for the system, which is asked last
		defer enough()
		var wg sync.WaitGroup
		for r := range all {
			if all[r].ended != "" {
				continue
			}
			wg.Go(func() {
				waits, err := j.ranks[r].client.Waits(ctx)
				all[r].waits, all[r].answered = waits, err == nil
				if len(waits) == 0 {
					look := j.ranks[r].hand.Look(late.Done())
					all[r].seen, all[r].stacks = look.Text, look.Stacks
				}
			})
		}
		wg.Wait()
		return all
	}
}

// used is what the ranks that run have used of the CPU.
func (j *job) used() map[int]time.Duration {
	used := map[int]time.Duration{}
	for r, p := range j.ranks {
		if p.end == nil {
			used[r] = p.hand.Used()
		}
	}
	return used
}

// giveUp says what the system shows of those that do not end even when killed, and returns how many there are. All are looked at at once: a host that does not
// answer is waited for once, however many of them it has.
func (j *job) giveUp() (n int) {
	stop, enough := context.WithTimeout(context.Background(), answerTime)
	defer enough()
	seen := make([]string, len(j.ranks))
	var wg sync.WaitGroup
	for r, p := range j.ranks {
		if p.end == nil {
			n++
			wg.Go(func() { seen[r] = p.hand.Look(stop.Done()).Text })
		}
	}
	wg.Wait()
	for r, p := range j.ranks {
		if p.end == nil {
			j.log.logf("rank %d on %s, process %d, does not end even when killed: %s", p.rank, p.host, p.hand.PID(), seen[r])
		}
	}
	return n
}
