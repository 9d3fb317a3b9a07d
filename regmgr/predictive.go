package regmgr

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gopgas/internal/callsite"
	"gopgas/internal/cost"
	"gopgas/internal/predict"
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

// aheader is what a manager has under the policy Predictive.
type aheader struct {
	m      *Manager
	skip   int
	clock  *callsite.Clock
	mind   *predict.Predictor
	helper *predict.Helper

	calls *predict.Stream
	dq    *predict.Queue // its producing side

	remote      atomic.Pointer[Remote] // nil: none
	remoteCalls *predict.Stream
	due         map[uint64]predict.Nanos // of its buckets, when the next use is expected; the helper's
	register    predict.Line

	board  *seats.Board  // nil: none
	gap    atomic.Int64  // the helper's: in what time it must act
	used   atomic.Uint64 // uses over, where there is a board
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
		m: m, skip: c.Skip, clock: c.Clock, dq: predict.NewQueue(c.Queue), due: make(map[uint64]predict.Nanos),
		calls: stream(), remoteCalls: stream(),
	}
	costs := costsOf(model)
	p.register = costs.Register
	p.mind = predict.New(predict.Config{
		Costs: costs, Window: c.Window, Age: c.Age, Periodicity: c.Periods,
	}, joint{spotCache{m}, p}, p.dq)
	m.ahead = p
	m.keeps.Store(true) // the helper gives back
	if c.Seat == nil && c.Board != nil {
		c.Node.Work = costs.GiveBack(workPages, 0)
		p.board = c.Board
		c.Seat = func() (predict.Nanos, bool) { return p.seat(c.Idle, c.Node) }
	}
	p.helper = predict.Start(m.cfg.Sched, p.mind, predict.HelperSetup{
		Now: c.Clock.Now, InFlight: p.inFlight, Poll: c.Poll, Seat: c.Seat,
		Ended: func() { m.keeps.Store(false) }, // from now on all goes on demand
	})
	return nil
}

// workPages is the size of a typical region: 1 MiB.
const workPages = 256

// seat asks the board for the helper's place, and posts what this rank has.
func (p *aheader) seat(policy seats.Policy, n seats.Node) (sharing predict.Nanos, has bool) {
	p.gap.Store(p.mind.Gap())
	p.post()
	s := p.board.Seat(policy, n)
	p.seated.Store(s.Has)
	return seats.Sharing(s.Helpers, n.Slice, n.Swap), s.Has
}

// post tells the node what this rank has registered for its own transfers.
func (p *aheader) post() {
	u := p.m.budget.Usage()
	p.board.Post(seats.Post{Bytes: uint64(max(0, u.Bytes-u.Lent)), Gap: p.gap.Load()})
}

// hashTime is t_hash: a hash of sixteen words, a look into a map, a sorted insertion.
const hashTime = 500

func costsOf(m cost.Model) predict.Costs {
	line := func(l cost.Line) predict.Line { return predict.Line{PerPage: l.A, Fixed: l.B, Residual: l.Residual} }
	return predict.Costs{Register: line(m.Register), Deregister: line(m.Deregister), Hash: hashTime, Compare: m.Compare}
}

// stop ends the helper and waits until it has left the manager alone.
func (p *aheader) stop() error { return p.helper.Stop(context.Background()) }

// called notes what a use is made of, at the time of the call: hit or miss.
func (p *aheader) called(h *Hold, q Request) {
	u := &h.use
	if q.Of != nil {
		*u = q.Of.use
		return
	}
	u.At = p.clock.Mark(&u.Stack, p.skip)
	u.Buf = q.Mem.Addr()
	kind := uint8(0)
	if q.Access&transport.LocalWrite != 0 {
		kind = 1
	}
	p.calls.Note(u, predict.MakeCall(kind, u.Buf))
}

// inFlight reports whether memory is in use of which the queue has not heard that it no longer is. All references that were
// taken are heard of; one that is being taken or dropped may be counted on one side only, for a moment.
func (p *aheader) inFlight() bool {
	heard := p.dq.Heard()
	return p.m.taken()+p.remoteCalls.Calls() > heard
}

// done tells the helper of a use that is over. Its reference has been dropped.
func (p *aheader) done(u *predict.Use) {
	p.dq.Put(u)
	if p.board != nil && p.used.Add(1)%seats.PostEvery == 0 {
		p.post()
	}
}

// prediction returns the figures for Stats.
func (p *aheader) prediction() Prediction {
	s := p.mind.Stats()
	return Prediction{
		Made: s.Predicted, Within05: s.WithinHalf, Within5: s.Within5, Missed: s.Mispredicted, LostDQ: s.Lost,
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
