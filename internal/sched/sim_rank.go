package sched

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"
)

// simRank is a rank in virtual time.
type simRank struct {
	m       *Sim
	s       *Sched
	id      int
	waiting []*coroutine // parked until something happens that they may wait for
	live    int          // coroutines that have not ended
	dead    bool
}

// coroutine is one goroutine of a rank: a thread with a processor of its own.
type coroutine struct {
	rank   *simRank
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	helper bool          // started by another coroutine
	local  time.Duration // until then its processor is busy with what it has been charged for
	turn   uint64        // grows when it becomes ready, so that an older alarm finds itself out of date
	place  int           // in Sim.all
	vain   int           // waits begun after the world was found stuck
	set    setting       // whether an alarm is set for turn

	when  func() bool // parked until this holds: who wakes the rank looks for it; nil: it looks itself
	naps  int         // waits with a time limit, one after the other, beside which nothing happened in the world
	nap   napping     // whether it is in one
	acted uint64      // the world's activity at the last of them
}

// setting says what is set for a coroutine.
type setting uint8

const (
	unset setting = iota
	alarmed
	limited
)

// errStopped unwinds a coroutine whose world has ended.
var errStopped = errors.New("the simulation has ended")

// start makes f a coroutine of the rank, ready at the caller's time.
func (r *simRank) start(f func()) {
	m := r.m
	c := &coroutine{rank: r, helper: m.current != nil, local: m.Now(), place: len(m.all)}
	body := func(yield func(struct{}) bool) {
		c.yield = yield
		defer func() {
			if v := recover(); v != nil && v != any(errStopped) {
				panic(v)
			}
		}()
		f()
	}
	c.resume, c.stop = iter.Pull(iter.Seq[struct{}](body))
	m.all = append(m.all, c)
	m.live++
	r.live++
	m.acted()
	if c.local > m.now {
		c.alarm(c.local)
	} else {
		c.wake()
	}
}

// forget takes an ended coroutine out of the books. What it did last may be what others of its rank wait for.
func (m *Sim) forget(c *coroutine) {
	last := len(m.all) - 1
	m.all[c.place] = m.all[last]
	m.all[c.place].place = c.place
	m.all[last] = nil
	m.all = m.all[:last]
	c.rank.live--
	if !c.rank.dead {
		m.live--
	}
	m.acted()
	c.rank.wakeAt(max(c.local, m.now))
}

// unwind ends what still stands somewhere in a wait when Run returns.
func (m *Sim) unwind() {
	m.over = true
	for len(m.all) > 0 {
		c := m.all[len(m.all)-1]
		m.all = m.all[:len(m.all)-1]
		m.current = c
		c.stop()
	}
	m.current = nil
}

// wake makes a parked coroutine ready.
func (c *coroutine) wake() {
	c.turn++
	if c.set != unset {
		c.rank.m.outdate(c.set == alarmed)
		c.set = unset
	}
	if !c.rank.dead {
		c.rank.m.ready = append(c.rank.m.ready, c)
	}
}

// Fire implements Action: the alarm that was set for turn.
func (c *coroutine) Fire(turn uint64) {
	if c.turn != turn {
		return
	}
	c.set = unset
	if i := slices.Index(c.rank.waiting, c); i >= 0 {
		c.rank.waiting = slices.Delete(c.rank.waiting, i, i+1)
	}
	c.wake()
}

// park gives the token away until somebody has woken c. Time goes on in here: where c itself is the next to run,
// nothing is switched.
func (c *coroutine) park() {
	m := c.rank.m
	if m.over {
		panic(errStopped) // a deferred call of one that is being unwound
	}
	if next := m.dispatch(); next != c {
		m.next = next
		if !c.yield(struct{}{}) {
			panic(errStopped)
		}
		return
	}
	m.take(c)
}

// until parks c until its own time is t, whatever happens.
func (c *coroutine) until(t time.Duration) {
	c.alarm(t)
	c.park()
}

// alarm wakes c at t unless something has woken it before. It is no activity: a wait with a time limit does nothing.
func (c *coroutine) alarm(t time.Duration) {
	m := c.rank.m
	m.seq++
	m.due++
	c.set = alarmed
	m.events.push(event{at: max(t, m.now), seq: m.seq, arg: c.turn, a: c})
}

// limit is the alarm of a wait for something else than time: alone it is nothing that is to happen.
func (c *coroutine) limit(t time.Duration) {
	m := c.rank.m
	m.seq++
	c.set = limited
	m.events.push(event{at: max(t, m.now), seq: m.seq, arg: c.turn, a: c, limit: true})
}

// wakeAll makes ready all who wait for something to happen to this rank. It reports whether there were any.
func (r *simRank) wakeAll() bool {
	kept := r.waiting[:0]
	for _, c := range r.waiting {
		if c.when != nil && !c.when() {
			kept = append(kept, c)
		} else {
			c.wake()
		}
	}
	woken := len(kept) < len(r.waiting)
	clear(r.waiting[len(kept):])
	r.waiting = kept
	return woken
}

// Fire implements Action: something happens to this rank now.
func (r *simRank) Fire(uint64) { r.wakeAll() }

// wakeAt is wakeAll at a time that may lie ahead. Who begins to wait later has looked at what was done already.
func (r *simRank) wakeAt(t time.Duration) {
	switch {
	case len(r.waiting) == 0:
	case t <= r.m.now:
		r.wakeAll()
	default:
		r.m.At(t, r, 0)
	}
}

// ring wakes this rank's waits at the time of who rings.
func (r *simRank) ring() { r.wakeAt(r.m.Now()) }

// now is the time of the rank's goroutine that asks, or the world's.
func (r *simRank) now() time.Duration {
	if c := r.m.current; c != nil && c.rank != r {
		return r.m.now
	}
	return r.m.Now()
}

func (m *Sim) charge(d time.Duration) {
	c := m.current
	if c == nil || d <= 0 {
		return
	}
	c.local = max(c.local, m.now) + d
	if m.exact || c.helper || c.rank.live-1 > len(c.rank.waiting) {
		c.until(c.local)
	}
}

func (m *Sim) chargeCopy(bytes, whole int) {
	if m.copy != nil && bytes > 0 {
		m.charge(m.copy(bytes, whole))
	}
}

// answer makes the rank hear b.
func (r *simRank) answer(b Bell) {
	if b.sim != nil {
		r.m.bells[b.rings] = r
	}
}

// Kill ends a rank of a simulated world at once, as a kill of its process would: none of its coroutines runs again.
// A rank that kills itself does not return from the call. In real time it does nothing.
func (s *Sched) Kill() {
	r := s.sim
	if r == nil || r.dead {
		return
	}
	r.dead = true
	r.waiting = nil
	m := r.m
	for _, c := range m.all {
		if c.rank == r {
			m.live--
			c.setNap(awake)
		}
	}
	m.acted()
	if c := m.current; c != nil && c.rank == r {
		c.park()
	}
}

// Lives reports whether a rank of a simulated world has coroutines that have not ended, and was not killed. In real time it is always true.
func (s *Sched) Lives() bool { return s.sim == nil || s.sim.live > 0 && !s.sim.dead }

// withTimeout is a context that ends at a virtual time.
func (r *simRank) withTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	ctx = limitedContext{ctx}
	if d <= 0 {
		cancel(context.DeadlineExceeded)
		return ctx, func() {}
	}
	t := &timer{r: r, cancel: cancel}
	r.m.At(later(r.m.Now(), d), t, 0)
	return ctx, t.stop
}

// limitedContext is a context whose end by its time limit is a DeadlineExceeded, as in real time. Those made of it have that as their cause alone.
type limitedContext struct{ context.Context }

// Err implements context.Context.
func (c limitedContext) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}

// timer ends a context at a time and has the rank's waits look.
type timer struct {
	r      *simRank
	cancel context.CancelCauseFunc
	over   bool // it has fired, or is not to any more
}

// Fire implements Action.
func (t *timer) Fire(uint64) {
	t.over = true
	t.cancel(context.DeadlineExceeded)
	t.r.wakeAll()
}

// stop is the context's CancelFunc.
func (t *timer) stop() {
	if t.over {
		return
	}
	t.over = true
	t.cancel(context.Canceled)
	t.r.m.outdate(true)
}

// forever is a time that no simulation comes to: some may be added to it.
const forever time.Duration = 1 << 62

// later is the time d after t.
func later(t, d time.Duration) time.Duration {
	if d > forever-t {
		return forever
	}
	return t + d
}
