package replay

import (
	"errors"

	"gopgas/internal/predict"
)

// state of a region. Registering and leaving end by themselves at a time.
type state uint8

const (
	absent state = iota
	registering
	ready
	leaving
)

// region is a span of pages that is, was, or is being registered.
type region struct {
	id       predict.Region
	span     span
	state    state
	until    predict.Nanos
	refs     int
	used     uint64        // the cache's count of uses when it was last released
	expected predict.Nanos // its next predicted use
	known    bool          // it was registered before
}

// at returns the region's state at a time that is not past.
func (r *region) at(t predict.Nanos) state {
	switch {
	case r.until > t:
	case r.state == registering:
		return ready
	case r.state == leaving:
		return absent
	}
	return r.state
}

// cache is a rank's registrations. It is a predict.Cache for the helper's step at time now.
type cache struct {
	costs   *Costs
	evicts  bool // idle regions make room
	account account
	lender  *lender       // nil: nothing is registered for others
	now     predict.Nanos // of the step under way
	took    predict.Nanos // by that step
	uses    uint64
	regions []*region // by id
	bySpan  map[span]*region
	live    []*region // not absent, or not long since

	registrations, deregistrations, evictions uint64
}

func newCache(cfg *Config, all, lent *meter) *cache {
	return &cache{
		costs: &cfg.Costs, evicts: cfg.Policy != LeavePinnedNoEvict, bySpan: map[span]*region{},
		account: account{limit: cfg.Limit, all: all, lent: lent},
	}
}

var errNoRoom = errors.New("no room")

// of returns the region of exactly that span.
func (c *cache) of(s span) *region {
	r := c.bySpan[s]
	if r == nil {
		r = &region{id: predict.Region(len(c.regions)), span: s, expected: predict.Never}
		c.regions = append(c.regions, r)
		c.bySpan[s] = r
	}
	return r
}

// find returns the region that holds the span, or else the region of exactly that span.
func (c *cache) find(now predict.Nanos, s span) *region {
	exact := c.of(s)
	if exact.at(now) != absent {
		return exact
	}
	kept := c.live[:0]
	var best *region
	for _, r := range c.live {
		st := r.at(now)
		if st == absent {
			continue
		}
		kept = append(kept, r)
		if best == nil && st != leaving && r.span.lo <= s.lo && s.hi <= r.span.hi {
			best = r
		}
	}
	c.live = kept
	if best != nil {
		return best
	}
	return exact
}

// register makes room and registers, one after the other from a time on. It returns when that is done, or when it was clear
// that there is no room. ahead: what a use is predicted of does not make room.
func (c *cache) register(at predict.Nanos, r *region, ahead bool) (predict.Nanos, error) {
	n := r.span.bytes()
	if !c.room(&at, n, ahead) {
		return at, errNoRoom
	}
	end := at + c.costs.Register.Mean(r.span.pages())
	r.state, r.until, r.known = registering, end, true
	c.account.charge(at, n, false)
	c.live = append(c.live, r)
	c.registrations++
	return end, nil
}

// room gives up what it takes for so many more bytes of this rank's own, and makes at as late as that was done.
func (c *cache) room(at *predict.Nanos, bytes int64, ahead bool) bool {
	for {
		answer := c.account.asks(*at, bytes, false)
		switch {
		case answer == granted:
			return true
		case !c.evicts, !c.account.holds(bytes):
			return false
		case answer == fullOwn && !c.spare(at, ahead), answer == fullAll && !c.yield(at, ahead):
			return false
		}
	}
}

// deregister begins the end of an idle region and returns how long it takes.
func (c *cache) deregister(at predict.Nanos, r *region) predict.Nanos {
	d := c.costs.Deregister.Mean(r.span.pages())
	r.state, r.until, r.expected = leaving, at+d, predict.Never
	c.account.charge(at+d, -r.span.bytes(), false)
	c.deregistrations++
	return d
}

// spare gives up an idle region: the one whose predicted use is latest, none being the latest of all, and among those the
// least recently used.
func (c *cache) spare(at *predict.Nanos, ahead bool) bool {
	after := predict.Nanos(-1)
	if ahead {
		after = predict.Never - 1
	}
	return c.evict(at, after, ^uint64(0))
}

// evict is spare for regions that are expected after a time and were used before that many uses.
func (c *cache) evict(at *predict.Nanos, after predict.Nanos, before uint64) bool {
	var worst *region
	for _, r := range c.live {
		if r.at(*at) != ready || r.refs > 0 || r.expected <= after || r.used >= before {
			continue
		}
		if worst == nil || r.expected > worst.expected || r.expected == worst.expected && r.used < worst.used {
			worst = r
		}
	}
	if worst == nil {
		return false
	}
	c.evictions++
	*at += c.deregister(*at, worst)
	return true
}

// take takes a reference.
func (c *cache) take(r *region) {
	c.uses++
	r.refs++
}

// release ends a reference.
func (c *cache) release(r *region) {
	r.refs--
	r.used = c.uses
}

// Registered reports whether the helper finds the region registered.
func (c *cache) Registered(id predict.Region) bool {
	s := c.regions[id].at(c.now)
	return s == ready || s == registering
}

// Register is the helper's: idle regions that nobody expects make room, others are the predictor's to choose.
func (c *cache) Register(id predict.Region) error {
	r := c.regions[id]
	begin := c.now + c.took
	if r.at(c.now) == leaving { // its end is waited for
		begin = max(begin, r.until)
	}
	end, err := c.register(begin, r, true)
	c.took = end - c.now
	if err != nil {
		return predict.ErrLimit
	}
	r.used = c.uses
	return nil
}

// Deregister is the helper's.
func (c *cache) Deregister(id predict.Region) bool {
	r := c.regions[id]
	if r.at(c.now) != ready || r.refs > 0 {
		return false
	}
	c.took += c.deregister(c.now+c.took, r)
	return true
}

// Expect notes when the region's next use is predicted.
func (c *cache) Expect(id predict.Region, at predict.Nanos) { c.regions[id].expected = at }

// Len is the number of regions a look-up compares.
func (c *cache) Len() int { return len(c.live) }
