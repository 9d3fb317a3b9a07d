package regmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"gopgas/internal/callsite"
	"gopgas/internal/cost"
	"gopgas/internal/predict"
	"gopgas/internal/sched"
	"gopgas/internal/seats"
	"gopgas/transport"
)

// Ahead is how the policy Predictive works: who predicts with what, and where its helper runs. The zero Ahead is the
// paper's predictor, and a core for the helper. What registrations cost is Config.Costs; without them the named model
// helper-threads.
type Ahead struct {
	Window  int           // calls before the current one in a signature; 0: 2
	Age     int           // longer periods in a row that end a shorter one; 0: a period never grows
	Poll    time.Duration // X, how late the helper may hear of a use; 0: 50 us
	Queue   int           // entries of the queue of uses; 0: 64
	Skip    int           // frames between a program's call and Acquire that are the same for all of them
	Periods int           // calls that the periodicity-based predictor looks at instead; 0: the paper's predictor
	// Clock stamps uses and is the helper's; nil: the processor's counter, calibrated by the manager's scheduler.
	Clock *callsite.Clock
	// Seat says now and then whether the helper has a core and how long others on it keep it waiting; nil: as Board says.
	Seat func() (sharing predict.Nanos, has bool)
	// Board is where the ranks of the node post what they have registered; Idle and Node decide by that who has a helper,
	// and where. nil: the helper has a core of its own, always. Node.Work is filled in.
	Board *seats.Board
	Idle  seats.Policy
	Node  seats.Node
}

// Values of Ahead.Window: no call before the current one, and the most.
const (
	NoWindow  = predict.NoWindow
	MaxWindow = predict.MaxWindow
)

// aheader is what a manager has under the policy Predictive.
type aheader struct {
	m       *Manager
	skip    int
	clock   *callsite.Clock
	counter bool // of clock
	mind    *predict.Predictor
	helper  *predict.Helper

	calls *predict.Stream

	remote      atomic.Pointer[Remote] // nil: none
	remoteCalls *predict.Stream
	remoteBegun atomic.Uint64            // uses of its buckets
	remoteDone  atomic.Uint64            // of them, over, or about to be told to the queue
	due         map[uint64]predict.Nanos // of its buckets, when the next use is expected; the helper's
	register    predict.Line

	board  *seats.Board // nil: none
	gap    atomic.Int64 // the helper's: the median period, which seats go by
	seated atomic.Bool
}

// startAhead begins to predict and to register ahead.
func (m *Manager) startAhead(c Ahead) error {
	model := m.cfg.Costs
	if model.PageBytes == 0 {
		var err error
		if model, err = cost.Named("helper-threads"); err != nil {
			return fmt.Errorf("register ahead: %w", err)
		}
	}
	switch s := m.cfg.Sched; {
	case c.Clock != nil:
	case s.Virtual():
		c.Clock = callsite.Plain(s.Now)
	default:
		c.Clock = callsite.New(s.Now)
	}
	stream := func() *predict.Stream {
		if c.Periods > 0 {
			return predict.NewStream(predict.NoWindow)
		}
		return predict.NewStream(c.Window)
	}
	p := &aheader{
		m: m, skip: c.Skip, clock: c.Clock, counter: c.Clock.Counter(), due: make(map[uint64]predict.Nanos),
		calls: stream(), remoteCalls: stream(),
	}
	m.queue = predict.NewQueue(c.Queue)
	costs := costsOf(model)
	p.register = costs.Register
	p.mind = predict.New(predict.Config{
		Costs: costs, Window: c.Window, Age: c.Age, Periodicity: c.Periods, Clock: p.time(),
	}, joint{spotCache{m}, p}, m.queue)
	m.ahead = p
	m.keeps.Store(true) // the helper gives back
	var seat func(*sched.Thread) (predict.Nanos, bool)
	switch {
	case c.Seat != nil:
		seat = func(*sched.Thread) (predict.Nanos, bool) { return c.Seat() }
	case c.Board != nil:
		c.Node.Work = costs.GiveBack(workPages, 0)
		p.board = c.Board
		seat = func(t *sched.Thread) (predict.Nanos, bool) { return p.seat(t, c.Idle, c.Node) }
	}
	p.helper = predict.Start(m.cfg.Sched, p.mind, predict.HelperSetup{
		Now: c.Clock.Now, InFlight: p.inFlight, Poll: c.Poll, Seat: seat,
		Ended: m.onDemand,
	})
	return nil
}

// onDemand is the end of the helper: from now on memory is registered on demand, and what nobody would give back is given back now.
// A Release that has not seen that yet has left its region idle before.
func (m *Manager) onDemand() {
	m.keeps.Store(false)
	for {
		m.mu.Lock()
		r := m.idle.oldest(nil, always)
		m.mu.Unlock()
		if r == nil {
			return
		}
		m.drop(r, &m.counts.released)
	}
}

// workPages is the size of a typical region: 1 MiB.
const workPages = 256

// seat asks the board for the helper's place, posts what this rank has, and binds the helper's thread where its core is not one of
// the rank's. If that is not allowed the helper has no place: it would take the rank's own.
func (p *aheader) seat(t *sched.Thread, policy seats.Policy, n seats.Node) (sharing predict.Nanos, has bool) {
	p.gap.Store(p.mind.Gap())
	p.post()
	s := p.board.Seat(policy, n)
	if core, spare := n.CoreOf(s); spare && t.Bind(core) != nil {
		s = seats.Seat{}
	}
	p.seated.Store(s.Has)
	return seats.Sharing(s.Helpers, n.Slice, n.Swap), s.Has
}

// post tells the node what this rank has registered for its own transfers.
func (p *aheader) post() {
	u := p.m.budget.Usage()
	p.board.Post(seats.Post{Bytes: uint64(max(0, u.Bytes-u.Lent)), Gap: p.gap.Load()})
}

// hashTime is t_hash in nanoseconds where the model does not know it, as those of papers do not.
const hashTime = 500

func costsOf(m cost.Model) predict.Costs {
	hash := m.Hash
	if hash == 0 {
		hash = hashTime
	}
	line := func(l cost.Line) predict.Line { return predict.Line{PerPage: l.A, Fixed: l.B, Residual: l.Residual} }
	return predict.Costs{Register: line(m.Register), Deregister: line(m.Deregister), Hash: predict.Nanos(hash + 0.5), Compare: m.Compare}
}

// stop ends the helper and waits until it has left the manager alone.
func (p *aheader) stop() error { return p.helper.Stop(context.Background()) }

// called notes what a use is made of, at the time of the call: hit or miss. of is the hold of the whole, of which this is a piece.
func (p *aheader) called(u *predict.Use, of *Hold, buf uint64, a transport.Access) {
	if of != nil {
		*u = of.use
		u.Paid = 0 // that was the whole's
		return
	}
	u.Paid = 0
	u.Buf = buf
	kind := uint8(0)
	if a&transport.LocalWrite != 0 {
		kind = 1
	}
	p.calls.Note(u, predict.MakeCall(kind, buf), p.caller())
	if p.counter { // last: what follows a reading of the counter waits for it
		u.At = int64(callsite.Capture(&u.Stack, p.skip))
		return
	}
	u.At = p.clock.Mark(&u.Stack, p.skip)
}

// caller tells goroutines apart, but not in virtual time, where nothing may go by the addresses that the runtime has found for them.
func (p *aheader) caller() callsite.Caller {
	if !p.counter {
		return 0
	}
	return callsite.Current()
}

// time returns what makes nanoseconds of the stamps of uses.
func (p *aheader) time() func(int64) predict.Nanos {
	if !p.counter {
		return nil
	}
	return func(stamp int64) predict.Nanos { return p.clock.At(callsite.Ticks(stamp)) }
}

// inFlight reports whether memory is in use of which the queue has not heard that it no longer is.
func (p *aheader) inFlight() bool {
	done := p.remoteDone.Load() // before the other, which is never less
	return p.remoteBegun.Load() != done || p.m.referenced()
}

// looked is how many regions the helper looks at before it takes for granted that one is in use.
const looked = 512

// referenced reports whether a region is referred to. A use takes no count that all uses share, so the regions are asked.
func (m *Manager) referenced() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.idle.heap) > looked || slices.ContainsFunc(m.idle.heap, func(r *Region) bool { return r.references() != 0 })
}

// ended is how many uses of the cache's regions are over.
func (p *aheader) ended() uint64 {
	all := p.m.queue.Heard()
	return all - min(all, p.remoteDone.Load())
}

// done tells the helper of a use that is over. Its reference has been dropped.
func (p *aheader) done(u *predict.Use) {
	p.m.queue.Put(u)
	if p.posts() {
		p.post()
	}
}

// posts reports whether it is time to post. Of two uses that end at once neither may find it so, or both.
func (p *aheader) posts() bool { return p.board != nil && p.m.queue.Heard()%seats.PostEvery == 0 }

// prediction returns the figures for Stats.
func (p *aheader) prediction() Prediction {
	s := p.mind.Stats()
	return Prediction{
		Made: s.Predicted, Within05: s.WithinHalf, Within5: s.Within5, Missed: s.Mispredicted, Late: s.Cancelled, LostDQ: s.Lost, Poll: p.helper.Poll(),
		Helper: p.helper.Running() && (p.board == nil || p.seated.Load()),
	}
}

// spotCache is the manager as the predictor sees it: regions are spots.
type spotCache struct{ m *Manager }

func (c spotCache) Registered(id predict.Region) bool {
	p, ok := c.m.spotByID(uint64(id))
	return ok && c.m.registered(&p)
}

func (c spotCache) Register(id predict.Region) error {
	p, ok := c.m.spotByID(uint64(id))
	if !ok {
		return predict.ErrGone
	}
	switch err := c.m.registerAhead(&p); {
	case errors.Is(err, errGone):
		return predict.ErrGone
	case err == errCopyBudget:
		return predict.ErrLimit
	default:
		return err
	}
}

func (c spotCache) Deregister(id predict.Region) bool {
	p, ok := c.m.spotByID(uint64(id))
	return ok && c.m.giveBack(&p)
}

func (c spotCache) Expect(id predict.Region, at predict.Nanos) {
	if at == predict.Never {
		at = 0
	}
	if p, ok := c.m.spotByID(uint64(id)); ok {
		c.m.expect(&p, at)
	}
}

func (c spotCache) Len() int { return c.m.budget.Usage().Regions }
