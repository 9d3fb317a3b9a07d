package sched

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Sched is how one rank waits, tells time and starts helpers. Make one with Process, Goroutine or Sim.Rank.
type Sched struct {
	sim       *simRank // virtual time; nil in the other bodies
	yield     func()
	shared    bool          // all ranks are goroutines of this process
	cores     int           // this rank's part of those that there are, at least 1
	spins     int           // pause instructions before the first yield
	yields    time.Duration // how long to yield before parking
	early     int           // percent of yields that are parks instead where invariants are checked
	bell      atomic.Pointer[Bell]
	own       Bell // used until the rank has memory that peers can reach
	ownMem    [2]atomic.Uint32
	waits     registry
	help      atomic.Pointer[helper]
	lingering lingering
	gave      atomic.Int64 // when a goroutine of the rank last gave its turn up, nanoseconds
	viewer    Observer     // nil: nobody looks on
	epoch     time.Time
	served    atomic.Uint32 // of the race detector alone
	timers    sync.Pool     // those that nobody sleeps by: a rank's keepers sleep some times a second as long as it lives
}

// Observer is told of every wait that went past its spinning phase, when it ends, by the goroutine that waited.
type Observer interface {
	Waited(what What, began, ended time.Duration)
}

// Observe has o told of waits. Call it before anything waits.
func (s *Sched) Observe(o Observer) { s.viewer = o }

// Phases of a wait. An answer from a core that runs takes well under a microsecond; one from a process that
// must first be scheduled takes a few. A rank that has yielded for longer than that waits for computation, and
// sleeping is cheaper for all.
const (
	spinsIdle   = 1000 // about 40 us of pause instructions: every rank has a core of its own
	spinsBusy   = 3    // more ranks than cores: the one waited for may need this one
	yieldsIdle  = 200 * time.Microsecond
	yieldsBusy  = 100 * time.Microsecond
	yieldLong   = 20 * time.Microsecond // a yield that takes so long was somebody else's turn
	parkFirst   = 200 * time.Microsecond
	parkLongest = 2 * time.Millisecond

	parkShortest = 50 * time.Microsecond
	parkShare    = 4  // of the time since something happened, no sleep is longer than such a part
	unrungShare  = 32 // nor than such a one where nobody rings: an end that a sleep hides costs a 64th, on average

	lastWordsTime = 30 * time.Millisecond
)

// Process returns the body of a rank that is a process of its own, one of ranksHere on the cores of this process.
func Process(ranksHere int) *Sched { return ProcessOn(ranksHere, runtime.NumCPU()) }

// ProcessOn is Process for ranks that have cores among them, of which a launcher may have bound each to a few.
func ProcessOn(ranksHere, cores int) *Sched { return newSched(ranksHere, cores, yieldProcessor) }

// Goroutine returns the body of a rank that is one of ranksHere goroutines of this process. It spins little: what it
// waits for may be a goroutine that needs this processor.
func Goroutine(ranksHere int) *Sched {
	s := newSched(ranksHere, runtime.NumCPU(), runtime.Gosched)
	s.spins = spinsBusy
	s.shared = true
	return s
}

// crowded reports whether ranks share cores: what is waited for may need the waiter's.
func (s *Sched) crowded() bool { return s.spins != spinsIdle }

// Cores is this rank's part of the cores that there are, at least 1; in virtual time 0.
func (s *Sched) Cores() int { return s.cores }

// OneProcess reports whether the ranks are goroutines of one process, so that what is limited by process they share.
func (s *Sched) OneProcess() bool { return s.shared }

func newSched(ranksHere, cores int, yield func()) *Sched {
	s := &Sched{yield: yield, cores: max(1, cores/max(1, ranksHere)), spins: spinsIdle, yields: yieldsIdle, early: 10, epoch: time.Now()}
	if ranksHere > cores {
		s.spins, s.yields = spinsBusy, yieldsBusy
	}
	s.waits.prepare()
	s.own = NewBell(&s.ownMem[0], &s.ownMem[1])
	s.bell.Store(&s.own)
	return s
}

// SetBell makes waits of this rank park on b, which peers can ring, instead of on a bell of its own.
func (s *Sched) SetBell(b Bell) {
	if s.sim != nil {
		s.sim.answer(b)
	}
	s.bell.Store(&b)
}

// helper is what a wait does beside waiting.
type helper struct {
	progress func() bool
	server   Server // nil: peers need none of this rank's threads
}

// SetProgress gives every slow step of a wait something useful to do first: f moves the rank's transfers along and
// reports whether it found anything. It must not wait, and may be called by several waits at once. server, which may be nil, is whose requests f performs, too,
// and for whom waits linger.
func (s *Sched) SetProgress(f func() bool, server Server) {
	s.help.Store(&helper{progress: f, server: server})
}

// DropBell makes waits park on the rank's own bell again: the memory of the other one is about to be unmapped.
func (s *Sched) DropBell() { s.bell.Store(&s.own) }

// Ring wakes the parked waits of this very rank: a helper goroutine has made something true for them.
func (s *Sched) Ring() {
	if s.sim != nil {
		s.sim.ring()
	} else if s.Heard() {
		s.bell.Load().ring()
	}
}

// Heard reports whether Ring may wake anybody, for whom a call in vain is too much.
//
//gcassert:inline
func (s *Sched) Heard() bool { return s.sim != nil || s.bell.Load().sleepers.Load() != 0 }

// Go runs f beside the caller.
func (s *Sched) Go(f func()) {
	if s.sim != nil {
		s.sim.start(f)
		return
	}
	go f()
}

// Virtual reports whether the rank lives in virtual time, where nothing that the machine does by itself, such as a garbage
// collection, may be seen.
func (s *Sched) Virtual() bool { return s.sim != nil }

// Pause tells the processor that the caller loops until another core's store. It is for threads that serve
// memory on their own, such as a software NIC's engine; whoever waits for a rank uses Begin and Step.
func Pause() { pause() }

// Yield lets another thread of the machine run on this processor, if one is ready. Like Pause it is for threads
// that serve memory on their own.
func Yield() { yieldProcessor() }

// Now returns nanoseconds since the rank began; it never goes back.
func (s *Sched) Now() time.Duration {
	if s.sim != nil {
		return s.sim.now()
	}
	return time.Since(s.epoch)
}

// Charge says that the caller has computed for d. It moves a virtual clock and does nothing in real time, where the
// computation itself has taken that long.
func (s *Sched) Charge(d time.Duration) {
	if s.sim != nil {
		s.sim.m.charge(d)
	}
}

// ChargeCopy says that the caller has copied bytes, as a part of a copy of whole bytes: how far a copy of that length
// reaches out of the caches decides its speed. Like Charge it counts in virtual time only.
func (s *Sched) ChargeCopy(bytes, whole int) {
	if s.sim != nil {
		s.sim.m.chargeCopy(bytes, whole)
	}
}

// WithTimeout is context.WithTimeoutCause by this scheduler's clock. The cause is context.DeadlineExceeded.
func (s *Sched) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if s.sim != nil {
		return s.sim.withTimeout(ctx, d)
	}
	return context.WithTimeout(ctx, d)
}

// Sleep waits for d or until ctx ends, whose cause it returns then. ctx may be nil. One sleep after the other allocates nothing.
func (s *Sched) Sleep(ctx context.Context, d time.Duration) error {
	if s.sim != nil {
		return s.sim.sleep(ctx, d)
	}
	if ctx == nil {
		time.Sleep(d)
		return nil
	}
	t, ok := s.timers.Get().(*time.Timer)
	if ok {
		t.Reset(d)
	} else {
		t = time.NewTimer(d)
	}
	defer func() {
		t.Stop() // it fires no more, and what it has sent is gone
		s.timers.Put(t)
	}()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WaitUntil waits until cond holds or ctx ends, whose cause it returns then. It is for goroutines that serve a rank and
// have nothing to do for long: it stands in no list of waits, in virtual time it costs nothing while others work, and a world in which only such waits
// go on is not stuck for them. What makes cond true rings the rank; cond changes nothing.
func (s *Sched) WaitUntil(ctx context.Context, cond func() bool) error {
	if s.sim != nil {
		return s.sim.waitUntil(ctx, cond)
	}
	sp := s.Begin(ctx, What{}, nil)
	sp.hidden = true
	defer sp.End()
	for !cond() {
		if err := sp.Step(); err != nil {
			return err
		}
	}
	return nil
}

// Waits lists the waits that have parked, oldest first.
func (s *Sched) Waits() []Wait { return s.waits.list(s.Now()) }
