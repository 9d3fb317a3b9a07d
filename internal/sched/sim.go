package sched

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Action is what happens at a moment of virtual time. Fire must not wait.
type Action interface{ Fire(arg uint64) }

// Sim is virtual time for many ranks in one process. Every goroutine of every rank is a coroutine, and exactly one of
// them, or one Action, runs at any moment: they hand a token on. Time stands still while somebody runs and moves
// when all wait, to the next thing that is to happen. Make one with NewSim.
//
// Nothing of a Sim may be used by two goroutines at once. Before Run it belongs to its maker; during Run to whoever
// has the token; then to its maker again.
type Sim struct {
	now    time.Duration
	events queue
	due    int // events that are not mere time limits, and not stale
	old    int // stale events
	naps   int // coroutines in a wait with a time limit
	weary  int // of them, those that have waited so again and again in vain
	seq    uint64
	rng    *rand.Rand
	mixed  bool // ranks that are ready at one moment run in an order of the seed

	ready   []*coroutine // that may run now, from readyAt on
	readyAt int
	current *coroutine // who has the token; nil while an action runs
	next    *coroutine // whom Run resumes
	all     []*coroutine
	live    int // coroutines that have not ended and whose rank lives

	ranks []*Sched
	bells map[*atomic.Uint32]*simRank // who sleeps on a bell, by its first word
	copy  func(bytes, whole int) time.Duration
	exact bool // computation that is charged takes its time at once

	activity uint64 // grows with whatever is not just another look at a condition
	marker   uint64 // activity when all were last told to look again
	looking  bool
	stuck    *StuckError
	over     bool         // Run is returning
	stopped  atomic.Bool  // Run is to return
	running  atomic.Int64 // the rank that has, or last had, the token; for who watches from outside
	counts   SimCounts
}

// SimCounts says what a simulation has done.
type SimCounts struct {
	Events   uint64 // actions
	Switches uint64 // from one coroutine to another
	// LostRings counts the moments at which nothing was left to happen and a wait ended all the same when it was told
	// to look again. In real time each costs a park's time limit (S1); it means that a ring is missing somewhere.
	LostRings uint64
}

// NewSim returns a simulation at time 0. With a seed of 0 coroutines that become ready at one moment run in the order
// in which they became ready; any other seed mixes them, always in the same way.
func NewSim(seed uint64) *Sim {
	m := &Sim{
		rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), mixed: seed != 0,
		bells: make(map[*atomic.Uint32]*simRank),
	}
	m.running.Store(-1)
	return m
}

// Rank returns the scheduler of a new rank of this world. Its Go before Run starts the rank.
func (m *Sim) Rank() *Sched {
	s := &Sched{}
	s.sim = &simRank{m: m, s: s, id: len(m.ranks)}
	s.own = s.NewBell(&s.ownMem[0], &s.ownMem[1])
	s.bell.Store(&s.own)
	m.ranks = append(m.ranks, s)
	return s
}

// SetCopyCost sets what Sched.ChargeCopy charges. nil: nothing.
func (m *Sim) SetCopyCost(f func(bytes, whole int) time.Duration) { m.copy = f }

// SetExact decides when computation that is charged takes its time. A rank of one goroutine whose memory only NICs
// touch notes it down and lets time pass when it waits next, which costs no switch: nobody else can see the
// difference. Where ranks map each other's memory they do see it; with SetExact(true) every charge lets time pass at
// once. Helpers, the goroutines that a rank starts while it runs, are exact always, and their rank is while one of them
// does not wait.
func (m *Sim) SetExact(on bool) { m.exact = on }

// Rand returns the simulation's source of chance. All chance in a simulation comes from here, or it is not repeatable.
func (m *Sim) Rand() *rand.Rand { return m.rng }

// Now returns the virtual time of whoever has the token.
func (m *Sim) Now() time.Duration {
	if c := m.current; c != nil {
		return max(c.local, m.now)
	}
	return m.now
}

// Time returns the time that all have reached: actions before it have fired. Who has the token may be ahead of it.
func (m *Sim) Time() time.Duration { return m.now }

// At has a fire at time t, or now if that has passed. What is to happen at one moment happens in the order of these
// calls.
func (m *Sim) At(t time.Duration, a Action, arg uint64) {
	m.activity++
	m.seq++
	m.due++
	m.events.push(event{at: max(t, m.now), seq: m.seq, arg: arg, a: a})
}

// Counts returns what the simulation has done so far.
func (m *Sim) Counts() SimCounts { return m.counts }

// Running returns the number of the rank that has or last had the token, -1 before Run. It may be called from outside at any time: a
// program that computes for ever, or blocks in a call that is not ours, never gives the token back.
func (m *Sim) Running() int { return int(m.running.Load()) }

// Stop has Run return, and end all coroutines, when the token is handed on next. It may be called from outside at any time: a world whose ranks look for
// ever for what does not come never ends by itself.
func (m *Sim) Stop() { m.stopped.Store(true) }

// Advance fires the next action and reports whether there was one. It is for worlds without coroutines, whose domains
// are used by ordinary goroutines under a lock of the caller's.
func (m *Sim) Advance() bool {
	e, ok := m.pop()
	if ok {
		m.fire(e)
	}
	return ok
}

// pop takes the next event that is not stale.
func (m *Sim) pop() (event, bool) {
	for {
		e, ok := m.events.pop()
		if !ok || !e.stale() {
			return e, ok
		}
		m.old--
	}
}

// oldMost is how many stale events there may be, if they are fewer than the others: where they are more all are taken out.
const oldMost = 64

// outdate notes that an event has become stale, one that was due or the limit of a wait.
func (m *Sim) outdate(due bool) {
	if due {
		m.due--
	}
	if m.old++; m.old > oldMost && m.old > len(m.events)/2 {
		m.events.sweep()
		m.old = 0
	}
}

func (m *Sim) fire(e event) {
	if !e.limit {
		m.due--
	}
	m.now = max(m.now, e.at) // the limit of a nap may have passed while all looked again
	m.counts.Events++
	e.a.Fire(e.arg)
}

// Run hands the token round until all coroutines have ended. When nothing can happen any more while some wait, their
// waits end with the *StuckError that Run returns. A panic of a coroutine is a panic of Run.
func (m *Sim) Run() error {
	defer m.unwind()
	m.next = m.dispatch()
	for m.next != nil {
		c := m.next
		m.next = nil
		m.counts.Switches++
		m.take(c)
		if _, waits := c.resume(); !waits {
			m.forget(c)
			m.next = m.dispatch()
		}
	}
	if m.stuck != nil {
		return m.stuck
	}
	return nil
}

// take gives c the token.
func (m *Sim) take(c *coroutine) {
	m.current = c
	m.running.Store(int64(c.rank.id))
}

// dispatch lets time pass until a coroutine may run, and returns that; nil when none ever will.
func (m *Sim) dispatch() *coroutine {
	m.current = nil
	for !m.stopped.Load() {
		if c := m.pick(); c != nil {
			return c
		}
		if m.live == 0 {
			return nil
		}
		if !m.idle() {
			if e, ok := m.pop(); ok {
				m.fire(e)
				continue
			}
		}
		if !m.lookAgain() {
			return nil
		}
	}
	return nil
}

// pick takes the next ready coroutine.
func (m *Sim) pick() *coroutine {
	for m.readyAt < len(m.ready) {
		i := m.readyAt
		if n := len(m.ready) - i; m.mixed && n > 1 {
			j := i + m.rng.IntN(n)
			m.ready[i], m.ready[j] = m.ready[j], m.ready[i]
		}
		c := m.ready[i]
		m.ready[i] = nil
		if m.readyAt++; m.readyAt == len(m.ready) {
			m.ready, m.readyAt = m.ready[:0], 0
		}
		if !c.rank.dead {
			return c
		}
	}
	return nil
}

// maxNaps is how many time limits of a goroutine, one after the other, pass in vain before it is taken for one that looks
// whether there is something to do, for ever.
const maxNaps = 16

// idle reports whether nothing is left but goroutines that nap and look, over and over.
func (m *Sim) idle() bool { return m.due == 0 && m.naps > 0 && m.weary == m.naps && m.stuck == nil }

// lookAgain tells all who wait to look at their conditions once more, since nothing is left that could make them true.
// If that has been tried in vain, all waits end with an error; if even that leads nowhere it returns false.
func (m *Sim) lookAgain() bool {
	switch {
	case m.stuck != nil:
		return false
	case m.looking && m.marker == m.activity:
		m.stuck = &StuckError{At: m.now, Waits: m.waits()}
	default:
		m.now += parkLongest
		m.looking = true
		m.marker = m.activity
	}
	woken := false
	for _, s := range m.ranks {
		woken = s.sim.wakeAll() || woken
	}
	return woken
}

// acted notes that a coroutine has done something else than to look at its condition.
func (m *Sim) acted() {
	m.activity++
	if m.looking && m.stuck == nil {
		m.looking = false
		m.counts.LostRings++
	}
}

// waits lists what every rank waits for that was not killed.
func (m *Sim) waits() []RankWait {
	var out []RankWait
	for r, s := range m.ranks {
		if s.sim.dead {
			continue
		}
		for _, w := range s.Waits() {
			out = append(out, RankWait{Rank: r, Wait: w})
		}
	}
	return out
}

// RankWait is a wait of one rank.
type RankWait struct {
	Rank int
	Wait
}

// StuckError says that ranks wait although nothing is left that could end their waits: a deadlock, or a signal that
// nobody sends.
type StuckError struct {
	At    time.Duration // virtual time
	Waits []RankWait
}

func (e *StuckError) Error() string {
	s := fmt.Sprintf("deadlock at virtual time %v: nothing is left to happen while %d waits go on", e.At, len(e.Waits))
	for i, w := range e.Waits {
		if i == 32 {
			return s + fmt.Sprintf("\n  and %d more", len(e.Waits)-i)
		}
		s += fmt.Sprintf("\n  rank %d: %s", w.Rank, w.Op)
		if w.Peer >= 0 {
			s += fmt.Sprintf(" (peer %d)", w.Peer)
		}
		s += fmt.Sprintf(" since %v at %s", (e.At - w.Since).Round(time.Nanosecond), w.Where)
	}
	return s
}
