package replay

import (
	"errors"
	"fmt"
	"slices"

	"gopgas/internal/callsite"
	"gopgas/internal/predict"
	"gopgas/internal/trace"
)

// rank replays one rank's events.
type rank struct {
	cfg    *Config
	id     int
	events []trace.Event
	here   func(peer int) bool // whether a peer shares the node
	next   int
	drift  predict.Nanos
	cache  *cache
	ends   []ending // by time
	end    predict.Nanos

	helped bool // it has a seat
	core   int
	ctx    predict.Context
	dq     *predict.Queue
	mind   *predict.Predictor
	wake   predict.Nanos

	counts Counts
}

// ending is a transfer under way.
type ending struct {
	at      predict.Nanos
	regions []*region
	use     predict.Use
	charged int64 // of fragments that come and go with the transfer
}

func newRank(cfg *Config, f *trace.File, here func(int) bool, m *meter) *rank {
	r := &rank{cfg: cfg, id: f.Rank, events: f.Events, here: here, wake: predict.Never, dq: predict.NewQueue(cfg.Queue)}
	r.cache = newCache(&cfg.Costs, cfg.Limit, m)
	p := cfg.Predictor
	p.Costs = cfg.Costs.forHelper()
	if cfg.Policy == Periodicity && p.Periodicity == 0 {
		p.Periodicity = defaultPeriodicity
	}
	if cfg.Policy == Predictive {
		p.Periodicity = 0
	}
	r.mind = predict.New(p, r.cache, r.dq)
	return r
}

// What can happen next.
const (
	nothing = iota
	completes
	turns
	calls
)

// upcoming returns what happens to the rank next, and when. At equal times a transfer completes before the helper looks,
// and the helper is done before the program calls. A helper's turn cannot begin before free.
func (r *rank) upcoming(free predict.Nanos) (what int, at predict.Nanos) {
	at = predict.Never
	if r.next < len(r.events) {
		what, at = calls, r.events[r.next].At+r.drift
	}
	if w := max(r.wake, free); r.helped && r.wake != predict.Never && w <= at && (what != nothing || len(r.ends) > 0) {
		what, at = turns, w
	}
	if len(r.ends) > 0 && r.ends[0].at <= at {
		what, at = completes, r.ends[0].at
	}
	return what, at
}

// turn lets the helper take a step and returns how long it took.
func (r *rank) turn(now predict.Nanos) predict.Nanos {
	r.cache.now, r.cache.took = now, 0
	act, wake := r.mind.Step(now)
	if act == predict.Slept {
		r.wake = max(wake, now+1)
		return 0
	}
	took := r.cache.took + r.cfg.Costs.Hash
	r.wake = now + max(took, 1)
	return took
}

// call is what the program does.
func (r *rank) call(now predict.Nanos) error {
	timed := r.events[r.next]
	e := &timed
	if e.Took == 0 {
		e.Took = r.cfg.Costs.transfer(e.Bytes)
	}
	r.next++
	r.end = max(r.end, now+e.Took)
	if int(e.Peer) >= 0 && r.here(int(e.Peer)) {
		r.counts.Local++
		return nil
	}
	if e.Bytes < uint64(r.cfg.Threshold) {
		r.counts.Small++
		return nil
	}
	r.counts.Calls++
	u := predict.Use{At: now, Buf: e.Addr, Stack: callsite.Stack(e.Stack)}
	r.ctx.Note(&u, predict.MakeCall(uint8(e.Kind), e.Addr))
	t := ending{use: u}
	exposed, err := r.begin(now, e, &t)
	if err != nil {
		return fmt.Errorf("rank %d at %.3f s: %d bytes at %#x: %w", r.id, float64(now)/1e9, e.Bytes, e.Addr, err)
	}
	r.pay(exposed)
	t.at = now + exposed + e.Took
	r.end = max(r.end, t.at)
	i, _ := slices.BinarySearchFunc(r.ends, t.at, func(a ending, at predict.Nanos) int {
		if a.at <= at {
			return -1
		}
		return 1
	})
	r.ends = slices.Insert(r.ends, i, t)
	return nil
}

// pay delays the rank.
func (r *rank) pay(d predict.Nanos) {
	r.drift += d
	r.counts.Critical += d
}

// begin does what the policy wants before the transfer and returns the time it keeps the caller.
func (r *rank) begin(now predict.Nanos, e *trace.Event, t *ending) (predict.Nanos, error) {
	switch p := r.cfg.Policy; {
	case p == Bounce, (p == Pipelined || p == PipelinedLeavePinned) && e.Bytes < pipelineFrom:
		return r.copied(e), nil
	case p == Pipelined:
		return r.pipeline(now, e, t), nil
	case p == PipelinedLeavePinned:
		return r.pipelineKept(now, e, t)
	}
	d, g, err := r.acquire(now, spanOf(e.Addr, e.Bytes))
	switch {
	case errors.Is(err, errNoRoom) && r.cfg.Policy == LeavePinnedNoEvict:
		return 0, &LimitError{Registered: r.cache.bytes, Needed: spanOf(e.Addr, e.Bytes).bytes(), Limit: r.cfg.Limit}
	case err != nil:
		r.counts.Fallback++
		return d + r.copied(e), nil
	}
	t.regions = append(t.regions, g)
	t.use.Region, t.use.Pages = g.id, g.span.pages()
	return d, nil
}

func (r *rank) copied(e *trace.Event) predict.Nanos {
	r.counts.Copies++
	return r.cfg.Costs.copyTime(e.Bytes)
}

// acquire takes a reference to a registration of the span and returns the time that took.
func (r *rank) acquire(now predict.Nanos, s span) (predict.Nanos, *region, error) {
	g := r.cache.find(now, s)
	r.cache.uses++
	g.used = r.cache.uses
	var waited predict.Nanos
	switch g.at(now) {
	case ready:
		r.counts.Hits++
		g.refs++
		return 0, g, nil
	case registering: // by the helper, or for another transfer
		r.counts.Late++
		g.refs++
		return g.until - now, g, nil
	case leaving:
		waited = g.until - now
		g.at(g.until)
	}
	known := g.known
	for {
		d, err := r.cache.register(now+waited, g)
		if err == nil {
			g.refs++
			if known {
				r.counts.Again++
			} else {
				r.counts.First++
			}
			return waited + d, g, nil
		}
		if r.cfg.Policy == LeavePinnedNoEvict {
			return waited, nil, err
		}
		d, ok := r.cache.evict(now+waited, -1)
		if !ok {
			return waited, nil, err
		}
		waited += d
	}
}

// pipeline registers fragments of a transfer one after the other while earlier ones travel; some of them at a time.
func (r *rank) pipeline(now predict.Nanos, e *trace.Event, t *ending) predict.Nanos {
	parts := fragments(e.Addr, e.Bytes)
	var costs []predict.Nanos
	for i, f := range parts {
		c := r.cfg.Costs.Register.Mean(f.pages())
		if i > 0 {
			c += r.cfg.Costs.Deregister.Mean(parts[i-1].pages())
		}
		costs = append(costs, c)
	}
	for _, f := range parts[:min(len(parts), pipelineDepth)] {
		t.charged += f.bytes()
	}
	r.cache.meter.add(now, t.charged)
	r.cache.registrations += uint64(len(parts))
	r.cache.deregistrations += uint64(len(parts))
	r.counts.First++
	last := r.cfg.Costs.Deregister.Mean(parts[len(parts)-1].pages())
	return pipelineExposed(costs, e.Took/predict.Nanos(len(parts))) + last
}

// pipelineKept is pipeline with fragments that stay.
func (r *rank) pipelineKept(now predict.Nanos, e *trace.Event, t *ending) (predict.Nanos, error) {
	before := r.counts
	var costs []predict.Nanos
	parts := fragments(e.Addr, e.Bytes)
	for _, f := range parts {
		d, g, err := r.acquire(now, f)
		if err != nil {
			for _, g := range t.regions {
				g.refs--
			}
			t.regions, r.counts = nil, before
			r.counts.Fallback++
			return r.copied(e), nil
		}
		costs, t.regions = append(costs, d), append(t.regions, g)
	}
	worst := r.counts
	r.counts = before // a call counts once, by its worst fragment
	switch {
	case worst.First > before.First:
		r.counts.First++
	case worst.Again > before.Again:
		r.counts.Again++
	case worst.Late > before.Late:
		r.counts.Late++
	default:
		r.counts.Hits++
	}
	return pipelineExposed(costs, e.Took/predict.Nanos(len(parts))), nil
}

// complete is the end of a transfer.
func (r *rank) complete() {
	t := r.ends[0]
	r.ends = slices.Delete(r.ends, 0, 1)
	for _, g := range t.regions {
		g.refs--
	}
	if t.charged > 0 {
		r.cache.meter.add(t.at, -t.charged)
	}
	if len(t.regions) == 0 {
		return
	}
	switch g := t.regions[0]; {
	case r.cfg.Policy == OnDemand:
		if g.refs == 0 && g.at(t.at) == ready {
			d := r.cache.deregister(t.at, g)
			r.pay(d)
			r.end = max(r.end, t.at+d)
		}
	case r.cfg.Policy.helped():
		r.dq.Put(&t.use)
		r.wake = min(r.wake, t.at+r.cfg.Costs.Poll)
	}
}
