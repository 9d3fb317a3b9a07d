package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gopgas/firehose"
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
	free   predict.Nanos // before that its program does not go on
	cache  *cache
	hose   *hoseEnd // nil: memory of other nodes is registered as a whole
	ends   []ending // by time
	end    predict.Nanos

	helped bool // it has a seat
	core   int
	ctx    *predict.Stream
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

	q     *firehose.Request // buckets of a piece of it, nil: none
	hosed []predict.Use     // of these
}

func newRank(cfg *Config, f *trace.File, here func(int) bool, all, lent *meter) *rank {
	r := &rank{cfg: cfg, id: f.Rank, events: f.Events, here: here, wake: predict.Never, free: math.MinInt64, dq: predict.NewQueue(cfg.Queue)}
	r.cache = newCache(cfg, all, lent)
	p := cfg.Predictor
	p.Costs = cfg.Costs.forHelper()
	if cfg.Policy == Periodicity && p.Periodicity == 0 {
		p.Periodicity = defaultPeriodicity
	}
	if cfg.Policy == Predictive {
		p.Periodicity = 0
	}
	r.ctx = predict.NewStream(p.Window)
	r.mind = predict.New(p, joint{r.cache, r}, r.dq)
	return r
}

// What can happen next.
const (
	nothing = iota
	completes
	arrives
	turns
	calls
)

// upcoming returns what happens to the rank next, and when. At equal times a transfer completes before a message arrives, that
// before the helper looks, and the helper is done before the program calls. A helper's turn cannot begin before free.
func (r *rank) upcoming(free predict.Nanos) (what int, at predict.Nanos) {
	at = predict.Never
	waits := r.hose.waits()
	if r.next < len(r.events) && !waits {
		what, at = calls, max(r.events[r.next].At+r.drift, r.free)
	}
	if w := max(r.wake, free); r.helped && r.wake != predict.Never && w <= at && (what != nothing || waits || len(r.ends) > 0) {
		what, at = turns, w
	}
	if r.hose != nil && len(r.hose.inbox) > 0 && r.hose.inbox[0].at <= at {
		what, at = arrives, r.hose.inbox[0].at
	}
	if len(r.ends) > 0 && r.ends[0].at <= at {
		what, at = completes, r.ends[0].at
	}
	return what, at
}

// turn lets the helper take a step and returns how long it took.
func (r *rank) turn(now predict.Nanos) predict.Nanos {
	r.cache.account.pass(now)
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
	blocks := e.Took > 0
	if !blocks {
		e.Took = r.cfg.Costs.transfer(e.Bytes)
	}
	r.next++
	r.pay(max(0, now-e.At-r.drift)) // it had to wait for the buckets of a transfer that had only to begin
	r.cache.account.pass(now)
	r.end = max(r.end, now+e.Took)
	if int(e.Peer) >= 0 && r.here(int(e.Peer)) {
		r.counts.Local++
		return nil
	}
	view, err := r.hose.view(e)
	if err != nil {
		return r.wrap(now, e, err)
	}
	if e.Bytes < uint64(r.cfg.Threshold) {
		r.counts.Small++
		if view != nil {
			r.hose.begin(e, blocks, view, now, ending{})
			r.goOn(now)
		}
		return nil
	}
	r.counts.Calls++
	u := predict.Use{At: now, Buf: e.Addr, Stack: callsite.Stack(e.Stack)}
	r.ctx.Note(&u, predict.MakeCall(uint8(e.Kind), e.Addr), 0)
	t := ending{use: u}
	exposed, err := r.begin(now, e, &t)
	if err != nil {
		return r.wrap(now, e, err)
	}
	r.pay(exposed)
	if view != nil {
		r.hose.begin(e, blocks, view, now+exposed, t)
		r.goOn(now)
		return nil
	}
	t.at = now + exposed + e.Took
	r.end = max(r.end, t.at)
	r.ends = insertEnding(r.ends, t)
	return nil
}

// wrap says at which call an error came up.
func (r *rank) wrap(now predict.Nanos, e *trace.Event, err error) error {
	return fmt.Errorf("rank %d at %.3f s: %d bytes at %#x: %w", r.id, float64(now)/1e9, e.Bytes, e.Addr, err)
}

// insertEnding puts an ending behind those of the same time.
func insertEnding(all []ending, t ending) []ending {
	i, _ := slices.BinarySearchFunc(all, t.at, func(a ending, at predict.Nanos) int {
		if a.at <= at {
			return -1
		}
		return 1
	})
	return slices.Insert(all, i, t)
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
		if d, ok := r.pipeline(now, e, t); ok {
			return d, nil
		}
		r.counts.Fallback++
		return r.copied(e), nil
	case p == PipelinedLeavePinned:
		return r.pipelineKept(now, e, t)
	}
	d, g, err := r.acquire(now, spanOf(e.Addr, e.Bytes))
	switch {
	case errors.Is(err, errNoRoom) && r.cfg.Policy == LeavePinnedNoEvict:
		return 0, &LimitError{Registered: r.cache.account.level, Needed: spanOf(e.Addr, e.Bytes).bytes(), Limit: r.cache.account.limit - r.cache.account.promised}
	case err != nil:
		r.counts.Fallback++
		return d + r.copied(e), nil
	}
	t.regions = append(t.regions, g)
	t.use.Region, t.use.Pages = g.id, g.span.pages()
	t.use.Pay(d)
	return d, nil
}

func (r *rank) copied(e *trace.Event) predict.Nanos {
	r.counts.Copies++
	return r.cfg.Costs.copyTime(e.Bytes)
}

// acquire takes a reference to a registration of the span and returns the time that took.
func (r *rank) acquire(now predict.Nanos, s span) (predict.Nanos, *region, error) {
	g := r.cache.find(now, s)
	from := now
	switch g.at(now) {
	case ready:
		r.counts.Hits++
		r.cache.take(g)
		return 0, g, nil
	case registering: // by the helper, or for another transfer
		r.counts.Late++
		r.cache.take(g)
		return g.until - now, g, nil
	case leaving:
		from = g.until
	}
	known := g.known
	end, err := r.cache.register(from, g, false)
	if err != nil {
		return end - now, nil, err
	}
	r.cache.take(g)
	if known {
		r.counts.Again++
	} else {
		r.counts.First++
	}
	return end - now, g, nil
}

// pipeline registers fragments of a transfer one after the other while earlier ones travel; some of them at a time.
// Where there is no room for those it does nothing and reports so.
func (r *rank) pipeline(now predict.Nanos, e *trace.Event, t *ending) (predict.Nanos, bool) {
	parts := fragments(e.Addr, e.Bytes)
	var most int64
	for _, f := range parts[:min(len(parts), pipelineDepth)] {
		most += f.bytes()
	}
	if r.cache.account.asks(now, most, false) != granted {
		return 0, false
	}
	t.charged = most
	var costs []predict.Nanos
	for i, f := range parts {
		c := r.cfg.Costs.Register.Mean(f.pages())
		if i > 0 {
			c += r.cfg.Costs.Deregister.Mean(parts[i-1].pages())
		}
		costs = append(costs, c)
	}
	r.cache.account.charge(now, most, false)
	r.cache.registrations += uint64(len(parts))
	r.cache.deregistrations += uint64(len(parts))
	r.counts.First++
	last := r.cfg.Costs.Deregister.Mean(parts[len(parts)-1].pages())
	return pipelineExposed(costs, e.Took/predict.Nanos(len(parts))) + last, true
}

// pipelineKept is pipeline with fragments that stay. Of those that have travelled the transfer needs none any more.
func (r *rank) pipelineKept(now predict.Nanos, e *trace.Event, t *ending) (predict.Nanos, error) {
	before := r.counts
	var costs []predict.Nanos
	parts := fragments(e.Addr, e.Bytes)
	for from := now; len(costs) < len(parts); {
		if n := len(t.regions); n == pipelineDepth {
			r.cache.release(t.regions[0])
			t.regions = append(t.regions[:0], t.regions[1:]...)
		}
		d, g, err := r.acquire(from, parts[len(costs)])
		from += d
		if err != nil {
			for _, g := range t.regions {
				r.cache.release(g)
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
	r.cache.account.pass(t.at)
	if t.q != nil {
		r.over(t.at, t.hosed)
		if r.hose.drop(t.q) {
			r.hose.send(t.at)
		}
		r.wakened(t.at)
	}
	for _, g := range t.regions {
		r.cache.release(g)
	}
	if t.charged > 0 {
		r.cache.account.charge(t.at, -t.charged, false)
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
