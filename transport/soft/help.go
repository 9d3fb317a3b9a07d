package soft

import (
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/softnic"
	"gopgas/transport"
)

// An engine's work is done by whoever holds it. Mostly that is its thread. But a few bytes are written sooner than another
// thread hears of them, so a poster does that itself, as a card takes them by programmed I/O; and who polls an empty queue has
// nothing better to do, while on a machine with fewer cores than threads the engine would have to be scheduled first. Long
// operations are for the thread, so that a program computes or copies meanwhile; but a thread that sleeps takes longer to wake than most
// copies last, and one that is awake has the bytes in another core's cache: 16 KiB that were just written take six times as long from there. So who
// polls moves what takes but a few microseconds, and who has polled in
// vain for a while, and plainly waits, a chunk of anything, which is a whole one mostly; and the thread, when it was idle,
// gives whoever posts as long as it takes to begin that.
//
// A request to a peer is answered by whoever polls there, or by the peer's engine, which naps as long as its pollers do the work.
// A poller that only spins keeps both off its processor until its time is up, and the scheduler likes to put two programs that
// spin on one processor and their two engines, which seem to do as much, on the other. So a poller that has found nothing for
// a while lets others run.

const (
	atOnceBytes = 8 << 10               // a poster moves as much itself
	atOnceOps   = 4                     // in so many operations
	pollBytes   = 64 << 10              // a poller moves an operation of as much as soon as it has found nothing
	patience    = 4                     // polls in vain, since the last long operation was posted, after which a poller moves a chunk of it
	headStart   = 2 * time.Microsecond  // what so many polls take: how long an idle thread leaves a new long operation to them
	nap         = 50 * time.Microsecond // how long the thread leaves the work to pollers before it looks again
	courtesy    = 32                    // polls in vain before others have the processor, where there are not enough: some 3 us
)

// hold makes the caller the one who performs, if nobody is; let ends that.
func (e *engine) hold() bool { return e.held.Load() == 0 && e.held.CompareAndSwap(0, 1) }

func (e *engine) let() {
	if n := int32(len(e.busy)); e.open.Load() != n {
		e.open.Store(n)
	}
	e.held.Store(0)
}

// letSoon is let for who has left nothing undone that he rings for: it need not be seen before what he does next.
func (e *engine) letSoon() { mem.Publish32(&e.held, 0) }

// turn is a round of the engine's own thread, if there may be something to do and nobody else does it.
func (e *engine) turn() (worked bool, next int64) {
	if !e.due() || !e.hold() {
		return false, never
	}
	defer e.let()
	return e.round()
}

// due reports whether a round may find something. Anybody may ask.
func (e *engine) due() bool {
	d := e.d
	if s := &d.seats[d.hot.Load()]; e.open.Load() > 0 || s.tail.Load() != s.sent.Load() || d.events.Load() != e.events.Load() {
		return true
	}
	for w := range d.posted {
		if d.posted[w].Load()|d.board.news(w).Load()|d.board.asked(w).Load() != 0 {
			return true
		}
	}
	return false
}

// brief reports whether operations, all to one seat, are better performed by who posts them.
func (d *domain) brief(ops []transport.Op) bool {
	if len(ops) == 0 || len(ops) > atOnceOps || d.cfg.slowed() {
		return false
	}
	bytes := 0
	for i := range ops {
		op := &ops[i]
		if op.Kind != transport.OpWrite && op.Kind != transport.OpRead || op.EP.Index != ops[0].EP.Index || int(op.NSGE) > len(op.SGE) {
			return false
		}
		bytes += softnic.Total(op.SGE[:op.NSGE])
	}
	return bytes <= atOnceBytes && int(ops[0].EP.Index) < len(d.seats)
}

// straight performs the first of ops, all to one seat, without the ring, and returns how many that were; the caller holds the engine. It
// leaves to the ring whatever is more than the plain case: an operation that is wrong, one that others come before, several to another process.
func (e *engine) straight(ops []transport.Op) (n int) {
	s := &e.d.seats[ops[0].EP.Index]
	p := s.p.Load()
	if e.stopping() || len(e.busy) > 0 || p == nil || p != s.served || s.inboxed || s.head != s.tail.Load() || p.gone() || len(ops) > 1 && !p.local {
		return 0 // several go as a bunch
	}
	sl := &e.now
	for n < len(ops) && e.plain(s, p, &ops[n]) {
		sl.set(&ops[n])
		bytes := softnic.Total(sl.first[:sl.NSGE])
		status := e.status(s, p, sl, bytes)
		s.offset = 0
		e.conclude(s, sl, status, e.judge(s, p, sl, status, bytes))
		n++
	}
	return n
}

// plain reports whether an operation can be performed without the ring, and takes its place if so. What is in several pieces is put together there.
func (e *engine) plain(s *seat, p *peer, op *transport.Op) bool {
	if op.NSGE > 1 || p.link.Load() != linkWord(op.EP.Incarnation, linkUp) {
		return false
	}
	if _, err := e.d.check(op); err != nil {
		return false
	}
	return s.reserve(e.d.cfg.MaxPost)
}

// atOnce performs what was just posted to s; the caller holds the engine. It reports false where that is left to the
// engine's thread: there is other work, or something must be waited for.
func (e *engine) atOnce(s *seat) bool {
	if e.stopping() || len(e.busy) > 0 || s.p.Load() == nil {
		return false
	}
	_, _, rest := e.serve(s)
	if !rest {
		e.enlist(s)
	}
	return rest
}

// giveWay has the thread, which is idle, leave a long operation that was just posted to who waits for it, if somebody does.
func (e *engine) giveWay() {
	d := e.d
	longs := d.longs.Load()
	if longs == e.longs {
		return
	}
	e.longs = longs
	if d.cfg.slowed() && !d.crowded {
		leave(int(d.from.Load()))
	}
	for until := d.sched.Now() + d.cfg.headStart; d.bulk.Load() > 0 && !e.stopping() && d.sched.Now() < until; {
		sched.Pause()
	}
}

// help is a round of somebody who polls and found nothing; vain says how often. What it moves of a long copy is limited to a chunk, as
// what the thread moves is, since it has a processor of Go's, which others of the rank may need.
func (e *engine) help(vain uint32) bool {
	d := e.d
	heavy, short := d.heavy.Load() > 0, d.bulk.Load() == 0
	if heavy && vain < patience || !e.hold() {
		return false
	}
	defer e.let()
	if e.stopping() || !e.due() { // the board goes when the domain is closed, which waits for who holds the engine
		return false
	}
	worked, _ := e.round()
	if short || !heavy && !d.crowded { // a thread that shares the poller's processor is dearer when it naps than asleep
		e.helped.Add(1)
	}
	return worked
}
