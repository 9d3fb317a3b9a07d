package predict

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"gopgas/internal/sched"
)

// Helper runs a predictor on a thread of its own. Start makes one. Whatever becomes of it, transfers go on: a region that
// it does not register in time is registered on demand.
type Helper struct {
	predictor *Predictor
	sched     *sched.Sched
	setup     HelperSetup
	stop      atomic.Bool
	ended     atomic.Bool
	failure   atomic.Pointer[error]
	steps     atomic.Uint64
	naps      atomic.Uint64
}

// HelperSetup is what a helper needs beside its predictor.
type HelperSetup struct {
	Now      func() Nanos  // the clock of the demand stamps
	InFlight func() bool   // whether uses have begun of which the DQ has not heard
	Ended    func()        // called when the helper has ended, by Stop or by a panic; nil: nothing
	Poll     time.Duration // X: the longest nap while uses are in flight; 0 means DefaultPoll
	Longest  time.Duration // the longest nap otherwise; 0 means DefaultLongest
	// Seat is asked now and then whether the helper has a place, and for its term of equation 2: n(t_slice + t_cs), how
	// long others on its core may keep it waiting. It may bind the thread, the helper's, to its core. Nil: a core of its own, always.
	Seat func(*sched.Thread) (sharing Nanos, has bool)
}

// Naps of a helper. A use that is in flight may complete at any time, and a region is to be given back soon after it. With
// nothing in flight the helper need only look whether that has changed: what it finds late was registered for that much
// longer. Deadlines end every nap.
const (
	DefaultPoll    = 50 * time.Microsecond
	DefaultLongest = time.Millisecond
	seatless       = 10 * time.Millisecond
	seatSteps      = 256 // steps between two looks at the board
)

// Start lets p run on a thread of its own until Stop. X becomes part of p's costs. Nobody else calls p.Step from now on.
func Start(s *sched.Sched, p *Predictor, setup HelperSetup) *Helper {
	if setup.Poll <= 0 {
		setup.Poll = DefaultPoll
	}
	if setup.Longest <= 0 {
		setup.Longest = DefaultLongest
	}
	p.Costs().Poll = Nanos(setup.Poll)
	h := &Helper{predictor: p, sched: s, setup: setup}
	s.Thread(h.run)
	return h
}

// Poll returns X, which statistics print.
func (h *Helper) Poll() time.Duration { return h.setup.Poll }

// Turns returns how often the helper has stepped and napped.
func (h *Helper) Turns() (steps, naps uint64) { return h.steps.Load(), h.naps.Load() }

// Err returns why the helper has ended by itself, or nil. All registrations are on demand then.
func (h *Helper) Err() error {
	if e := h.failure.Load(); e != nil {
		return *e
	}
	return nil
}

// Running reports whether the helper still looks after its predictor.
func (h *Helper) Running() bool { return !h.ended.Load() }

// Stop ends the helper and waits until it has left its predictor and its cache alone. A registration under way is finished
// first. ctx ends the wait only.
func (h *Helper) Stop(ctx context.Context) error {
	h.stop.Store(true)
	sp := h.sched.Begin(ctx, sched.What{Op: "end of the registration helper", Peer: -1}, nil)
	defer sp.End()
	for !h.ended.Load() {
		if err := sp.Step(); err != nil {
			return fmt.Errorf("wait for the end of the registration helper: %w", err)
		}
	}
	return nil
}

func (h *Helper) run(t *sched.Thread) {
	defer func() {
		if r := recover(); r != nil {
			err := fmt.Errorf("the registration helper has ended, registrations go on demand: %v", r)
			h.failure.Store(&err)
		}
		if h.setup.Ended != nil {
			h.setup.Ended()
		}
		h.ended.Store(true)
		h.sched.Ring()
	}()
	sinceSeat := seatSteps
	for !h.stop.Load() {
		if sinceSeat++; sinceSeat > seatSteps && h.setup.Seat != nil {
			sinceSeat = 0
			if sharing, has := h.setup.Seat(t); has {
				h.predictor.Costs().Sharing = sharing
			} else { // everything stays registered, and uses unread
				sinceSeat = seatSteps
				h.nap(t, seatless)
				continue
			}
		}
		_, wake := h.predictor.Step(h.setup.Now())
		h.steps.Add(1)
		if d := h.until(wake); d > 0 {
			h.nap(t, d)
		}
	}
}

// until returns how long to nap when there is nothing to do before wake.
func (h *Helper) until(wake Nanos) time.Duration {
	longest := h.setup.Longest
	if h.setup.InFlight == nil || h.setup.InFlight() {
		longest = h.setup.Poll
	}
	return napUntil(h.setup.Now(), wake, longest)
}

// napUntil is the nap before wake: no longer than longest.
func napUntil(now, wake Nanos, longest time.Duration) time.Duration {
	if wake <= now {
		return 0
	}
	return time.Duration(min(wake-now, Nanos(longest)))
}

func (h *Helper) nap(t *sched.Thread, d time.Duration) {
	h.naps.Add(1)
	t.Nap(d)
}
