package soft

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"

	"gopgas/internal/sched"
	"gopgas/transport"
)

// Pace of an engine.
const (
	burst     = 16                     // operations of one peer before the next peer's
	chunk     = 1 << 20                // bytes moved before others have their turn
	lookEvery = 64                     // rounds between looks at the clock
	spinMin   = 5 * time.Microsecond   // bounds of how long an idle engine looks for work
	spinMax   = 200 * time.Microsecond //
	spinPure  = 20 * time.Microsecond  // as long as other threads are not let run meanwhile
	spinReply = 3 * time.Microsecond   // the same, where it may be the peer's engine that needs the processor
	sleepMax  = 100 * time.Millisecond // by S1 of package sched no sleep is without an end
	spinSlack = 60 * time.Microsecond  // a sleep shorter than this is spun instead
)

// engine is what performs a rank's operations, one thread at a time: its own, or one that helps (help.go).
type engine struct {
	d      *domain
	held   atomic.Uint32 // 1: somebody performs
	open   atomic.Int32  // seats in busy, as last left
	helped atomic.Uint32 // how often a poller has performed

	// The thread's own.
	relied  uint32     // helped, as last seen
	longs   uint64     // of domain.longs, seen
	rest    sched.Bell // nobody rings it
	restMem [2]atomic.Uint32
	window  time.Duration // how long it looks for work before it sleeps
	gave    time.Duration // when it last gave its turn up
	pure    time.Duration // how much of that without letting others run

	// Of whoever performs.
	mover    mover
	now      slot             // an operation that is performed without the ring
	part     [4]transport.SGE // the pieces of one chunk
	whole    [4]transport.SGE // those of an operation
	busy     []*seat          // with operations that are not finished
	hot      *seat            // the one posted to most: its tail is looked at always
	others   int              // how often in a row it was another one
	events   atomic.Uint64    // of domain.events, seen
	patience time.Duration    // until when a closing engine waits for peers
}

func (e *engine) init(d *domain) {
	e.d = d
	e.mover.prepare()
	e.rest = sched.NewBell(&e.restMem[0], &e.restMem[1])
	e.busy = make([]*seat, 0, len(d.seats))
	e.hot = &d.seats[d.job.Rank]
	e.window = d.cfg.Spin
	e.pure = spinPure
	if d.crowded {
		e.pure = spinMin
	}
	if e.window == 0 {
		e.window = spinMax / 4
	}
}

// never is the time of what nobody waits for.
const never = int64(1<<63 - 1)

// runEngine performs this rank's operations, and the requests of its peers, until the domain is closed. It has a
// thread of its own: a copy in the kernel holds up no goroutine.
func (d *domain) runEngine() {
	defer d.helpers.Add(-1)
	runtime.LockOSThread() // never unlocked: the thread, whose timers are changed, ends with the goroutine
	sharpenTimers()
	e := &d.engine
	for !d.stop.Load() || !e.wound() {
		if worked, _ := e.turn(); !worked {
			e.idle()
		}
	}
	d.ended.Store(true)
}

// idle looks for work for a while, then sleeps until the bell rings, or until the next operation that is held
// back may be performed. The while grows when work came right after the engine fell asleep.
func (e *engine) idle() {
	d := e.d
	if n := e.helped.Load(); n != e.relied {
		e.relied = n
		e.rest.Wait(e.rest.Arm(), nap)
		e.rest.Disarm()
		return
	}
	began := d.sched.Now()
	until, polite := began+e.window, began+e.pure
	if e.open.Load() > 0 {
		polite = began + spinReply // a peer's engine may have something of this one's
	}
	yield := false
	for n := 1; ; n++ {
		e.giveWay()
		worked, next := e.turn()
		if worked {
			return
		}
		if !yield && n%lookEvery != 0 {
			sched.Pause()
			continue
		}
		now := d.sched.Now()
		if yield = now >= polite && next == never; yield {
			// The processor to other threads and, at times, this thread's share of Go's to other goroutines. Two more threads get up for that, and
			// another operation is late by as much: where the NIC is slowed, and has to be on time, that is seldom.
			if n%lookEvery == 0 && (!d.cfg.slowed() || now-e.gave >= sched.TurnLasts) {
				e.gave = now
				sched.GiveTurn()
			} else {
				sched.Yield()
			}
		}
		if int64(now) >= next {
			return
		}
		if now >= until && next-int64(now) > int64(spinSlack) {
			break
		}
	}
	d.beds.Add(1)
	seq := d.bell.Arm()
	// S2 of package sched: look once more after the announcement.
	worked, next := false, int64(0)
	if e.hold() {
		worked, next = e.round()
		e.let()
	}
	if !worked && !d.stop.Load() {
		asleep := d.sched.Now()
		limit := d.cfg.sleepMax
		if next != never {
			limit = min(limit, time.Duration(next)-asleep-spinSlack/2)
		}
		if limit > 0 {
			rung := d.bell.Wait(seq, limit)
			e.adapt(rung, d.sched.Now()-asleep)
		}
	}
	d.bell.Disarm()
}

// rouse wakes the engine's thread, if it sleeps, unless somebody of this rank has since it lay down: it may be some hundred microseconds until a thread that was
// wakened runs, where it shares the processor of one that does not pause, and to wake it takes a system call each time.
//
// What is to be done was posted before beds is looked at. The thread counts in beds before it looks for the last time: so it finds that, or is wakened.
func (d *domain) rouse() {
	if now := d.beds.Load(); d.roused.Load() != now && d.bell.Ring() {
		d.roused.Store(now)
	}
}

// adapt chooses the next window from how long a sleep was.
func (e *engine) adapt(rung bool, slept time.Duration) {
	switch {
	case e.d.cfg.Spin != 0:
	case rung && slept < spinMax:
		e.window = min(2*e.window, spinMax)
	case slept > 10*spinMax:
		e.window = max(e.window/2, spinMin)
	}
}

// round looks at everything once. Where it could do nothing it says when to look again at what is held back.
func (e *engine) round() (worked bool, next int64) {
	d := e.d
	if s := e.hot; s.sent.Load() != s.tail.Load() {
		e.enlist(s)
		e.others = 0
	}
	for w := range d.posted {
		for set := take(&d.posted[w]); set != 0; set &= set - 1 {
			s := &d.seats[64*w+bits.TrailingZeros64(set)]
			e.enlist(s)
			e.favour(s)
		}
		for set := take(d.board.news(w)); set != 0; set &= set - 1 {
			if r := 64*w + bits.TrailingZeros64(set); r < len(d.seats) {
				e.look(r)
				worked = true
			}
		}
		for set := take(d.board.asked(w)); set != 0; set &= set - 1 {
			if r := 64*w + bits.TrailingZeros64(set); r < len(d.seats) {
				e.enlist(&d.seats[r])
				d.seats[r].inboxed = true
			}
		}
	}
	if n := d.events.Load(); n != e.events.Load() {
		e.events.Store(n)
		for r := range d.seats {
			e.look(r)
		}
		worked = true
	}
	next = never
	for i := 0; i < len(e.busy); {
		s := e.busy[i]
		w, at, rest := e.serve(s)
		worked, next = worked || w, min(next, at)
		if rest {
			s.inBusy = false
			e.busy[i] = e.busy[len(e.busy)-1]
			e.busy = e.busy[:len(e.busy)-1]
			continue
		}
		i++
	}
	return worked, next
}

// favour makes a seat the hot one when only others than the present one have been posted to for a while.
// Who posted to the old one at this moment has set no bit: it is looked at once more.
func (e *engine) favour(s *seat) {
	if e.others++; e.others < 4 || s == e.hot {
		return
	}
	old := e.hot
	e.hot, e.others = s, 0
	e.d.hot.Store(int64(s.rank))
	if old.sent.Load() != old.tail.Load() {
		e.enlist(old)
	}
}

// enlist puts a seat into the list of those to be served.
func (e *engine) enlist(s *seat) {
	if !s.inBusy {
		s.inBusy = true
		e.busy = append(e.busy, s)
	}
}

// look finds what has happened to a rank beside operations: it has introduced itself, its link has changed, it is gone.
func (e *engine) look(r int) {
	d := e.d
	s := &d.seats[r]
	e.enlist(s)
	first := d.board.record(r).Word64(0).Load()
	if answer := d.board.accept(r).Load(); first != 0 && (answer^first)&^(saidYes|saidShort) != 0 && !d.stop.Load() && s.receiving.CompareAndSwap(false, true) {
		d.helpers.Add(1)
		d.sched.Go(func() { d.receive(r) })
	}
	s.inboxed = true
}

// serve does what can be done for one seat. rest says that nothing is left to be done until somebody calls.
func (e *engine) serve(s *seat) (worked bool, next int64, rest bool) {
	p := s.p.Load()
	if p == nil {
		return false, never, s.head == s.tail.Load()
	}
	if s.served != p {
		s.served, s.sawGone = p, false
	}
	if s.inboxed {
		worked, s.inboxed = e.answer(p)
	}
	if p.gone() && !p.buried.Load() {
		if !e.bury(s, p) {
			return worked, never, false
		}
		worked = true
	}
	w, next := e.perform(s, p)
	return worked || w, next, s.head == s.tail.Load() && !s.inboxed
}

// take empties a word of a bitmap.
func take(w *atomic.Uint64) uint64 {
	if w.Load() == 0 {
		return 0
	}
	return w.Swap(0)
}

// wound reports whether nothing of this rank is in a peer's hands any more, so that the engine may end. A peer
// that has claimed a request and is stopped in the middle of it is not waited for longer than FailureTimeout.
func (e *engine) wound() bool {
	if !e.hold() {
		return false
	}
	defer e.let()
	if e.patience == 0 {
		e.patience = e.d.sched.Now() + e.d.cfg.FailureTimeout
	}
	for r := range e.d.seats {
		if s := &e.d.seats[r]; s.head != s.sent.Load() && e.d.sched.Now() < e.patience {
			return false
		}
	}
	return true
}
