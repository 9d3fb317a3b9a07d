package predict

import "errors"

// Act is what a step did.
type Act uint8

// Acts.
const (
	Slept      Act = iota // nothing to do before the time returned
	GaveBack              // a use came, its region was given back
	Kept                  // a use came, its region stays registered or is referred to
	Registered            // a region was registered ahead of its use
	Found                 // a region to be registered was registered already
	Refused               // a region could not be registered: the use will find it missing
	Dropped               // a region with a later deadline made room under the limit
	Expired               // a predicted use did not come
)

// String names the act.
func (a Act) String() string {
	return [...]string{"slept", "gave back", "kept", "registered", "found", "refused", "dropped", "expired"}[a]
}

// Config is what a predictor is set to. The zero Config is the paper's but for Costs.
type Config struct {
	Costs    Costs
	Window   int     // W, previous calls in a signature; 0 means 2, NoWindow none
	Slack    float64 // part of the period that a predicted use may be late; 0 means a quarter
	MinSlack Nanos   // and at least this; 0 means 1 ms
	Age      int     // differences in a row, all much longer, that end a period; 0: a period never grows
	Sites    int     // most signatures; 0 means 65 536
	// Clock converts the stamps of uses, which their calls leave to the helper as they are; nil: they are nanoseconds.
	Clock func(stamp int64) Nanos
	// Periodicity, if not 0, is the number of calls that the periodicity-based predictor looks at (8 to 1024); it
	// then makes the predictions, and signatures take no window.
	Periodicity int
	// Mean makes the periodicity-based predictor take the mean interval of all repetitions in its window, not the latest one.
	Mean bool
}

// NoWindow as Config.Window makes signatures of the current call alone.
const NoWindow = -1

func (c Config) withDefaults() Config {
	switch {
	case c.Window == 0:
		c.Window = 2
	case c.Window < 0:
		c.Window = 0
	}
	if c.Slack == 0 {
		c.Slack = 0.25
	}
	if c.MinSlack == 0 {
		c.MinSlack = 1e6
	}
	if c.Sites <= 0 {
		c.Sites = 1 << 16
	}
	if c.Periodicity > 0 {
		c.Window = 0
	}
	return c
}

// Predictor is the helper's mind: the call-site table, the RQ and the turn. Make one with New.
type Predictor struct {
	cfg    Config
	cache  Cache
	dq     *Queue
	table  table
	rq     schedule
	vigil  vigil
	cycle  *cycle    // of the periodicity-based predictor, else nil
	left   []*region // their last site has gone to another region
	ask    bool      // the turn is the RQ's
	use    Use
	paid   Nanos // by the calls heard of, for registrations on demand
	counts counts
}

// New returns a predictor that reads uses from dq and acts on cache.
func New(c Config, cache Cache, dq *Queue) *Predictor {
	c = c.withDefaults()
	p := &Predictor{cfg: c, cache: cache, dq: dq}
	p.table = table{sites: map[uint64]*site{}, regions: map[Region]*region{}, limit: c.Sites}
	if c.Periodicity > 0 {
		p.cycle = newCycle(c.Periodicity)
		p.cycle.mean = c.Mean
	}
	return p
}

// Costs returns the estimates, which the goroutine that calls Step may change between steps.
func (p *Predictor) Costs() *Costs { return &p.cfg.Costs }

// Step does one thing and returns when to call again: now if there may be more to do, Never if only a use can bring
// work. Work that takes time is over when it returns; the next step is told the new time.
func (p *Predictor) Step(now Nanos) (Act, Nanos) {
	if n := len(p.left); n > 0 {
		r := p.left[n-1]
		p.left = p.left[:n-1]
		return p.leave(now, r), now
	}
	if !p.ask && p.dq.take(&p.use) {
		p.ask = true
		return p.used(now), now
	}
	if len(p.rq) > 0 && !p.mayWait(now, p.rq[0]) {
		p.ask = false
		return p.serve(now, p.rq[0]), now
	}
	// A use that completed but has not been heard of is no misprediction: the DQ goes first.
	if p.dq.take(&p.use) {
		p.ask = true
		return p.used(now), now
	}
	if len(p.vigil) > 0 && p.vigil[0].expiry <= now {
		p.ask = false
		return p.expire(now, p.vigil[0]), now
	}
	// An item that comes while the helper sleeps is looked at after the RQ's head, because it may cost more than the
	// one that was assumed.
	p.ask = true
	return Slept, p.wake()
}

// used handles an item of the DQ.
func (p *Predictor) used(now Nanos) Act {
	u := &p.use
	if p.cfg.Clock != nil {
		u.At = p.cfg.Clock(u.At)
	}
	p.counts.uses.Add(1)
	s := p.table.site(Signature(u, p.cfg.Window))
	former := s.region
	p.withdraw(s) // an item that is still queued is stale: the use went on demand
	if former != nil && former.id != u.Region {
		p.left = append(p.left, former) // P5
	}
	p.counts.judge(s.guess, u.At)
	s.observe(u.At, p.paid, p.cfg.Age, p.slack(s.period))
	p.paid += Nanos(u.Paid)
	r := p.table.attach(s, u.Region, u.Pages)
	at, waited := r.earliest(s)
	due, known := p.predict(s, u.At)
	s.guess = guess{}
	if known {
		s.due, s.deadline = due, due-p.lead(s)
		s.guess = guess{from: s.last, to: due}
		at = min(at, s.deadline)
	}
	act := p.giveBack(now, r, at, waited)
	if act == Kept {
		p.counts.kept.Add(1)
	}
	if known {
		s.state = queued
		p.rq.insert(s, p.gap)
	} else {
		p.table.detach(s)
	}
	p.expect(r)
	return act
}

// leave looks at a region that a site waited for whose use then lay in another one, such as a larger one around it.
func (p *Predictor) leave(now Nanos, r *region) Act {
	if of := p.table.regions[r.id]; of != nil {
		r = of
	}
	at, waited := r.earliest(nil)
	p.expect(r)
	return p.giveBack(now, r, at, waited)
}

// predict returns when the site's next use is due.
func (p *Predictor) predict(s *site, at Nanos) (Nanos, bool) {
	if p.cycle != nil {
		return p.cycle.next(s.sig, at)
	}
	return s.last + s.period, s.period > 0
}

// lead is by how much the next use may come earlier than it is due. A period in which calls registered on demand contains those
// registrations, which are made ahead the next time.
func (p *Predictor) lead(s *site) Nanos {
	if p.cycle != nil {
		return 0
	}
	return min(s.lead, s.period)
}

// giveBack is the deregistration condition and what follows from it.
func (p *Predictor) giveBack(now Nanos, r *region, earliest Nanos, waited bool) Act {
	if waited || now+p.cfg.Costs.GiveBack(r.pages, len(p.rq)) > earliest || !p.cache.Deregister(r.id) {
		return Kept
	}
	p.counts.gaveBack.Add(1)
	return GaveBack
}

// mayWait is the registration condition.
func (p *Predictor) mayWait(now Nanos, s *site) bool { return now+p.delay(s) <= s.deadline }

func (p *Predictor) delay(s *site) Nanos {
	next := s.pages
	if u := p.dq.front(); u != nil {
		next = max(next, u.Pages)
	}
	return p.cfg.Costs.Delay(s.pages, next, len(p.rq), p.cache.Len())
}

// gap is the distance that s needs from the item before it.
func (p *Predictor) gap(s *site) Nanos {
	return p.cfg.Costs.Pair(s.pages, s.pages, len(p.rq), p.cache.Len())
}

// serve handles the head of the RQ, whose time has come.
func (p *Predictor) serve(now Nanos, s *site) Act {
	r := s.region
	if p.cache.Registered(r.id) {
		p.await(now, s)
		p.counts.found.Add(1)
		return Found
	}
	err := p.cache.Register(r.id)
	switch {
	case err == nil:
		p.await(now, s)
		p.counts.registered.Add(1)
		return Registered
	case errors.Is(err, ErrLimit) && p.drop(s):
		p.counts.dropped.Add(1)
		return Dropped // s is still the head and tries again
	case errors.Is(err, ErrGone):
		p.forget(r)
	default:
		p.withdraw(s)
	}
	p.expect(r) // else the cache would keep a time at which nobody comes
	p.counts.refused.Add(1)
	return Refused
}

// await moves s from the RQ to those whose use is expected at any moment.
func (p *Predictor) await(now Nanos, s *site) {
	p.rq.remove(s)
	s.state = awaited
	s.expiry = max(s.due, now) + p.slack(s.due-s.last)
	p.vigil.insert(s)
	p.expect(s.region)
}

// drop gives back the registered region with the latest deadline, if that is later than that of s.
func (p *Predictor) drop(s *site) bool {
	for i := len(p.rq) - 1; i > 0; i-- {
		r := p.rq[i].region
		if (r.id^s.region.id)&Elsewhere != 0 {
			continue
		}
		at, waited := r.earliest(nil)
		if waited || at <= s.deadline || at != p.rq[i].deadline {
			continue // needed sooner by another site, or now
		}
		if p.cache.Registered(r.id) && p.cache.Deregister(r.id) {
			return true
		}
	}
	return false
}

// expire gives up an awaited use, and its region where no other use needs it. A region that somebody refers to is in
// use, perhaps by the very call that was predicted: that one has some more time to be heard of.
func (p *Predictor) expire(now Nanos, s *site) Act {
	r := s.region
	at, waited := r.earliest(s)
	if p.giveBack(now, r, at, waited) == Kept && at == Never && !waited && p.cache.Registered(r.id) {
		p.vigil.remove(s)
		s.expiry = now + p.slack(s.period)
		p.vigil.insert(s)
		return Kept
	}
	p.withdraw(s)
	p.expect(r)
	p.counts.mispredicted.Add(1)
	return Expired
}

// withdraw makes s idle.
func (p *Predictor) withdraw(s *site) {
	switch s.state {
	case queued:
		p.rq.remove(s)
		p.counts.cancelled.Add(1)
	case awaited:
		p.vigil.remove(s)
	}
	s.state = idle
	p.table.detach(s)
}

// forget ends all predictions for a region.
func (p *Predictor) forget(r *region) {
	for len(r.sites) > 0 {
		p.withdraw(r.sites[0])
	}
}

// expect tells the cache of r's next predicted use.
func (p *Predictor) expect(r *region) {
	at := Never
	for _, s := range r.sites {
		at = min(at, s.due)
	}
	p.cache.Expect(r.id, at)
}

// slack is how late a use that was predicted after the given period may come.
func (p *Predictor) slack(period Nanos) Nanos {
	return max(p.cfg.MinSlack, Nanos(p.cfg.Slack*float64(period)))
}

// wake returns when the head can wait no longer or an awaited use is given up.
func (p *Predictor) wake() Nanos {
	at := Never
	if len(p.rq) > 0 {
		at = p.rq[0].deadline - p.delay(p.rq[0]) + 1
	}
	if len(p.vigil) > 0 {
		at = min(at, p.vigil[0].expiry)
	}
	return at
}
