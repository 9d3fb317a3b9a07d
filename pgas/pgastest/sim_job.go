package pgastest

import (
	"context"
	"fmt"

	"gopgas/bootstrap"
	"gopgas/internal/sched"
)

// simMeeting is the launcher of a simulated world. It costs no virtual time: what a launcher takes to start a job is not
// the library's.
type simMeeting struct {
	killed func(rank int) bool
	scheds []*sched.Sched
	round  *simRound
	dead   error // why no round can complete any more
	left   int   // ranks that closed, or died
	who    int   // the first of them
}

// simRound is one Exchange of all ranks.
type simRound struct {
	cards   [][]byte
	arrived int
	done    bool
	err     error
}

// simJob is one rank's view. Only who has the token calls it, so nothing is locked.
type simJob struct {
	m      *simMeeting
	rank   int
	busy   bool
	broken error
	closed bool
}

func newSimMeeting(scheds []*sched.Sched, killed func(rank int) bool) *simMeeting {
	m := &simMeeting{scheds: scheds, killed: killed}
	m.round = m.newRound()
	return m
}

func (m *simMeeting) newRound() *simRound { return &simRound{cards: make([][]byte, len(m.scheds))} }

// end lets no round complete any more.
func (m *simMeeting) end(why error) {
	if m.dead == nil {
		m.dead = why
		m.round.err, m.round.done = why, true
		m.ring()
	}
}

func (m *simMeeting) ring() {
	for _, s := range m.scheds {
		s.Ring()
	}
}

// Interrupted implements sched.Watch. Nobody rings when a rank was killed: a wait learns of it when it looks again.
func (m *simMeeting) Interrupted() error {
	for r := range m.scheds {
		if m.killed(r) {
			return fmt.Errorf("rank %d: %w", r, bootstrap.ErrRankLeft)
		}
	}
	return nil
}

// leave notes that a rank takes part no more.
func (m *simMeeting) leave(rank int) {
	if m.left++; m.left == 1 {
		m.who = rank
	}
	if m.round.arrived > 0 {
		m.end(fmt.Errorf("rank %d: %w", rank, bootstrap.ErrRankLeft))
	}
}

func (j *simJob) Rank() int        { return j.rank }
func (j *simJob) Size() int        { return len(j.m.scheds) }
func (j *simJob) Launcher() string { return bootstrap.LauncherInProcess }
func (j *simJob) Name() string     { return "simulated" }

func (j *simJob) Barrier(ctx context.Context) error {
	if _, err := j.meet(ctx, nil); err != nil {
		return fmt.Errorf("barrier of the job: %w", err)
	}
	return nil
}

// Exchange gives all ranks the very same cards, which nobody may change: a thousand ranks would hold a million copies.
func (j *simJob) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	cards, err := j.meet(ctx, card)
	if err != nil {
		return nil, fmt.Errorf("exchange cards: %w", err)
	}
	return cards, nil
}

func (j *simJob) meet(ctx context.Context, card []byte) ([][]byte, error) {
	s := j.m.scheds[j.rank]
	sp := s.Begin(ctx, sched.What{Op: "meet the other ranks", Peer: -1}, j.m)
	defer sp.End()
	for j.busy {
		if err := sp.Step(); err != nil {
			return nil, err
		}
	}
	if j.broken != nil {
		return nil, fmt.Errorf("this rank gave up a collective call before: %w", j.broken)
	}
	if j.m.dead != nil {
		return nil, j.m.dead
	}
	r := j.m.round
	r.cards[j.rank] = append([]byte{}, card...)
	r.arrived++
	switch {
	case j.m.left > 0:
		j.m.end(fmt.Errorf("rank %d: %w", j.m.who, bootstrap.ErrRankLeft))
	case r.arrived == len(r.cards):
		r.done = true
		j.m.round = j.m.newRound()
		j.m.ring()
	}
	j.busy = true
	defer func() { j.busy = false }()
	for !r.done {
		if err := sp.Step(); err != nil {
			j.broken = err
			return nil, err
		}
	}
	return append([][]byte{}, r.cards...), r.err
}

func (j *simJob) Abort(code int, why string) error {
	j.m.end(fmt.Errorf("rank %d with code %d (%s): %w", j.rank, code, why, bootstrap.ErrAborted))
	return nil
}

func (j *simJob) Close() error {
	if !j.closed {
		j.closed = true
		j.m.leave(j.rank)
	}
	return nil
}

var _ bootstrap.Job = (*simJob)(nil)
