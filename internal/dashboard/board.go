package dashboard

import (
	"sync"
	"time"

	"gopgas/internal/control"
)

// Job is what does not change.
type Job struct {
	Program string
	Ranks   int
	Every   time.Duration // how often ranks are asked
}

// Board is what is known of a job. Make one with NewBoard. Any goroutine may call its methods; none waits for a rank. It is a
// launch.Watcher.
type Board struct {
	job   Job
	now   func() time.Time
	began time.Time

	mu      sync.Mutex // guards what follows
	ranks   []rank
	history history
}

// rank is what is known of one.
type rank struct {
	pid   int
	ended string // how; empty: it runs
	asked time.Time
	last  control.Sample // without its flows
	flows map[channel]control.Path
}

// channel is where a flow goes.
type channel struct {
	with int
	via  string
}

// NewBoard returns the board of a job that begins now.
func NewBoard(j Job) *Board { return newBoard(j, time.Now) }

func newBoard(j Job, now func() time.Time) *Board {
	b := &Board{job: j, now: now, began: now(), ranks: make([]rank, j.Ranks)}
	for r := range b.ranks {
		b.ranks[r].flows = make(map[channel]control.Path)
	}
	b.history.step = j.Every
	return b
}

// Started notes the process of a rank.
func (b *Board) Started(rank, pid int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ranks[rank].pid = pid
}

// Sampled notes what a rank says of itself. What it says of ranks that do not exist is dropped.
func (b *Board) Sampled(rank int, s control.Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.ranks[rank]
	for _, f := range s.Flows {
		if f.With >= 0 && f.With < len(b.ranks) {
			r.flows[channel{f.With, f.Via}] = control.Path{Ops: f.Ops, Bytes: f.Bytes}
		}
	}
	s.Flows = nil
	s.Extra = noFall(r.last.Extra, s.Extra)
	r.last, r.asked = s, b.now()
	b.history.add(b.now().Sub(b.began), b.sumLocked)
}

// Ended notes how a rank ended.
func (b *Board) Ended(rank int, how string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ranks[rank].ended = how
}

// sumLocked adds up what the history keeps.
func (b *Board) sumLocked() (p point) {
	for i := range b.ranks {
		r := &b.ranks[i]
		for _, paths := range r.last.Transports {
			for _, path := range paths {
				p.bytes += float64(path.Bytes)
				p.ops += float64(path.Ops)
			}
		}
		p.moves += r.last.Extra["firehose.moves"]
		if r.ended == "" {
			p.registered += r.last.Extra["reg.bytes"]
			p.heap += r.last.Extra["heap.used"]
		}
	}
	return p
}

// States of a rank.
const (
	stateStarting = "starting" // it has not said anything yet; a program that knows nothing of this library never does
	stateComputes = "computes"
	stateWaits    = "waits"
	stateSilent   = "silent"
	stateEnded    = "ended"
)

// silence is how long a rank may be silent: a few questions, and longer than a busy machine takes.
func (b *Board) silence() time.Duration { return max(5*b.job.Every, 2*time.Second) }

// state says what a rank does.
func (b *Board) state(r *rank, now time.Time) string {
	switch {
	case r.ended != "":
		return stateEnded
	case r.asked.IsZero():
		return stateStarting
	case now.Sub(r.asked) > b.silence():
		return stateSilent
	case len(r.last.Waits) > 0:
		return stateWaits
	}
	return stateComputes
}
