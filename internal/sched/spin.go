package sched

import (
	"context"
	"time"

	"gopgas/internal/invariants"
)

// What names what a wait waits for. Peer is -1 where all ranks are meant, or none in particular.
type What struct {
	Op   string
	Peer int
}

// Anyone is the Peer of a wait that any rank may end.
const Anyone = -2

// Watch is what a wait depends on beside its condition. Interrupted is asked often and must be cheap; its
// error ends the wait.
type Watch interface{ Interrupted() error }

// Spin is one wait in progress. It lives on the stack of the goroutine that waits.
type Spin struct {
	s     *Sched
	ctx   context.Context
	watch Watch
	what  What

	n      int           // steps so far
	began  time.Duration // when the slow phase began; 0: it has not
	moved  time.Duration // when it began anew, since something had happened
	park   time.Duration // the next park's limit
	asked  time.Duration // how long it had waited when Unsure last said so
	doomed time.Duration // when the watch was first interrupted
	turned time.Duration // when it, or the rank before it, last gave its turn up
	seq    uint32        // the bell's count when the wait was armed
	armed  bool          // announced as a sleeper
	unrung bool          // see Unrung
	hidden bool          // no wait of the program's: in no list
	rec    *record       // in the list of waits

	polled    bool     // see Hushes
	hushable  Hushable // likewise
	hushed    Hushable // who was told
	lingering bool     // see lingers

	sitting time.Duration // the next sleep's limit in a seat
}

// Begin starts a wait. ctx and watch may be nil. It costs nothing and allocates nothing; call End when the loop
// is left.
func (s *Sched) Begin(ctx context.Context, what What, watch Watch) Spin {
	return Spin{s: s, ctx: ctx, watch: watch, what: what}
}

// Step lets some time pass: a pause at first, then a yield, then a sleep that the rank's bell ends. It returns
// the context's cause when the context has ended, and the watch's error when that has one.
func (sp *Spin) Step() error {
	if sp.n < sp.s.spins && !invariants.Sometimes(1) {
		if sp.n++; sp.n == 1 {
			sp.first()
		}
		pause()
		return nil
	}
	return sp.slow()
}

// first is what the first step does besides.
func (sp *Spin) first() {
	switch {
	case sp.s.crowded(), sp.began != 0: // it pauses soon, or has
	case sp.polled:
		sp.hush(sp.hushable)
	case sp.warm():
		sp.n = sp.s.spins // who lingers looks for peers' requests, and who spins does not
	}
}

// Slept reports whether the wait went past its spinning phase; it is what counts as a wait in statistics.
func (sp *Spin) Slept() bool { return sp.began != 0 }

// When a wait that is listed asks whom it waits for: first after askFirst, then each time it has lasted twice as long, but not more
// seldom than every askSeldom.
const (
	askFirst  = 10 * time.Millisecond
	askSeldom = time.Second
)

// Unsure reports, now and then while a wait lasts, that it is worth finding out for which rank it waits at present, at the price of some
// communication; For takes the answer.
func (sp *Spin) Unsure() bool {
	if sp.rec == nil || sp.s.sim != nil { // in virtual time nobody looks on
		return false
	}
	waited := sp.s.Now() - sp.began
	if waited < askFirst || waited < min(2*sp.asked, sp.asked+askSeldom) {
		return false
	}
	sp.asked = waited
	return true
}

// For says for which rank the wait waits from now on.
func (sp *Spin) For(peer int) {
	sp.what.Peer = peer
	if sp.rec != nil {
		sp.s.waits.setPeer(sp.rec, peer)
	}
}

// slow is a step beyond the spinning phase.
func (sp *Spin) slow() error {
	if sp.s.sim != nil {
		return sp.virtual()
	}
	if sp.watch != nil {
		if err := sp.watch.Interrupted(); err != nil {
			return sp.lastWords(err)
		}
	}
	if err := Ended(sp.ctx); err != nil {
		return err
	}
	help := sp.s.help.Load()
	if help != nil && help.progress() {
		return nil
	}
	now := sp.s.Now()
	if sp.began == 0 {
		sp.begin(now)
	}
	if help != nil && sp.lingers(help.server, now) {
		pause()
		return nil
	}
	switch {
	case now == sp.began:
		// The first one yields in any case, below.
	case now-sp.moved < sp.s.yields && !invariants.Sometimes(sp.s.early):
		// Yield below.
	case !sp.armed:
		// S2: announce, then let the caller look at its condition once more before the sleep.
		sp.unhush(Seldom)
		sp.arm()
		return nil
	default:
		sp.sleep()
		return nil
	}
	sp.s.yield()
	if sp.hushed != nil && sp.s.Now()-now > yieldLong {
		sp.unhush(Seldom) // somebody else has had the processor, and may have it again
	}
	return nil
}

// begin begins the slow phase.
func (sp *Spin) begin(now time.Duration) {
	sp.began, sp.moved, sp.park, sp.turned = now, now, parkFirst, sp.s.Gave()
}

// Moved tells a wait that has many parts that one of them is done: the next may be as near, so what is slow begins anew with
// yielding. Without it all but the first parts of a long transfer would each be waited for asleep. What a wait has merely helped
// with is no part of it: who wakes up for a peer's request goes back to sleep, and leaves the processor to the NIC's threads.
func (sp *Spin) Moved() {
	if sp.began == 0 || sp.s.sim != nil {
		return
	}
	if sp.armed {
		sp.s.bell.Load().Disarm()
		sp.armed = false
	}
	sp.moved, sp.park = sp.s.Now(), parkFirst
}

// parkMost is how long a sleep may be, at most, when so much was waited already: what it may lose is a part of that.
func parkMost(waited time.Duration, unrung bool) time.Duration {
	if unrung {
		return max(parkShortest, waited/unrungShare)
	}
	return max(parkShortest, waited/parkShare)
}

// Unrung says that nobody may ring when what is waited for has come, as the end of what a NIC does for this rank, so that each sleep is a smaller
// part of what was waited already.
func (sp *Spin) Unrung() { sp.unrung = true }

// Ended returns the cause of a context that has ended; nil is one that never does. Waits ask it, and what goes on for long or begins
// without having to wait.
func Ended(ctx context.Context) error {
	if ctx == nil || ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// lastWords returns nil for a while after the watch was interrupted: a rank that is gone may have done all that this
// wait needs before it went, and others may be about to pass it on.
func (sp *Spin) lastWords(err error) error {
	now := sp.s.Now()
	if sp.doomed == 0 {
		sp.doomed = now
	}
	if now-sp.doomed > lastWordsTime {
		return err
	}
	sp.leave(Seldom)
	sp.unhush(Seldom)
	if help := sp.s.help.Load(); help == nil || !help.progress() {
		sp.s.yield()
	}
	return nil
}

// list puts the wait into the rank's list of waits (S3).
func (sp *Spin) list() {
	if sp.rec == nil && !sp.hidden {
		sp.rec = sp.s.waits.add(sp.what, sp.began)
	}
}

func (sp *Spin) arm() {
	sp.list()
	sp.seq = sp.s.bell.Load().Arm()
	sp.armed = true
}

func (sp *Spin) sleep() {
	b, now := sp.s.bell.Load(), sp.s.Now()
	if now-sp.turned >= TurnLasts { // though others of the rank have: each has its own
		sp.turned = now
		sp.s.giveTurn(now)
	}
	if b.Wait(sp.seq, min(sp.park, parkMost(now-sp.moved, sp.unrung))) {
		sp.park = parkFirst
	} else {
		sp.park = min(2*sp.park, parkLongest)
	}
	b.Disarm()
	sp.armed = false
}

// End closes the wait.
func (sp *Spin) End() {
	sp.s.Seen()
	sp.leave(NoMore)
	sp.unhush(NoMore)
	if sp.began == 0 {
		return
	}
	if sp.armed {
		sp.s.bell.Load().Disarm()
		sp.armed = false
	}
	if sp.rec != nil {
		sp.s.waits.remove(sp.rec)
		sp.rec = nil
	}
	if sp.s.viewer != nil && !sp.hidden {
		sp.s.viewer.Waited(sp.what, sp.began, sp.s.Now())
	}
}
