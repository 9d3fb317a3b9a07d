package pgas

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gopgas/internal/control"
	"gopgas/internal/sched"
)

// lateStart is the cause of the end of Init's patience.
type lateStart struct{ limit time.Duration }

func (e lateStart) Error() string {
	return fmt.Sprintf("not all ranks have started within %v (%s)", e.limit, envStart)
}

// Unwrap says that a deadline has passed.
func (e lateStart) Unwrap() error { return context.DeadlineExceeded }

// starting is what there is to tell of a rank that has not joined its world yet: that it waits for the others, and since when. What
// the launcher says of them meanwhile is kept until there is a table to write it into.
type starting struct {
	began time.Time
	where string // the program's call

	mu   sync.Mutex
	done bool
	gone []lostRank
}

// lostRank is the launcher's word on the end of a rank.
type lostRank struct {
	rank int
	why  string
}

func newStarting() *starting { return &starting{began: time.Now(), where: sched.Caller()} }

// waits returns what the rank waits for; over says that it has joined, and that the scheduler knows.
func (s *starting) waits() (list []Wait, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil, true
	}
	return []Wait{{Op: "start", Peer: -1, Since: time.Since(s.began), Where: s.where, Detail: "until all ranks have joined"}}, false
}

// keep takes word of a rank's end, unless this one has joined.
func (s *starting) keep(g lostRank) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	s.gone = append(s.gone, g)
	return true
}

// over ends the start; tell is given what was kept.
func (s *starting) over(tell func(rank int, why string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	for _, g := range s.gone {
		tell(g.rank, g.why)
	}
	s.gone = nil
}

// attendant answers the launcher from the start on: for the world when there is one, and by what is known before that.
type attendant struct {
	*handler
	node string
}

// Waits implements control.Handler.
func (a attendant) Waits() []Wait {
	if list, over := a.w.start.waits(); !over {
		return list
	}
	return a.handler.Waits()
}

// Stats implements control.Handler.
func (a attendant) Stats() control.Stats {
	if _, over := a.w.start.waits(); !over {
		return control.Stats{Rank: a.w.Rank(), Node: a.node}
	}
	return a.handler.Stats()
}

// Sample implements control.Handler.
func (a attendant) Sample() control.Sample {
	if list, over := a.w.start.waits(); !over {
		return control.Sample{Node: a.node, Waits: list}
	}
	return a.handler.Sample()
}

// PeerGone implements control.Handler.
func (a attendant) PeerGone(rank int, why string) {
	if !a.w.start.keep(lostRank{rank, why}) {
		a.handler.PeerGone(rank, why)
	}
}
