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
	used     uint64        // the cache's count of uses at the last one
	expected predict.Nanos // its next predicted use
	known    bool          // it was registered before
}

// at brings the region's state up to the time.
func (r *region) at(now predict.Nanos) state {
	if r.until <= now {
		switch r.state {
		case registering:
			r.state = ready
		case leaving:
			r.state = absent
		}
	}
	return r.state
}

// cache is a rank's registrations. It is a predict.Cache for the helper's step at time now.
type cache struct {
	costs   *Costs
	limit   int64
	meter   *meter
	now     predict.Nanos // of the step under way
	took    predict.Nanos // by that step
	bytes   int64
	uses    uint64
	regions []*region // by id
	bySpan  map[span]*region
	live    []*region // not absent, or not long since

	registrations, deregistrations, evictions uint64
}

func newCache(c *Costs, limit int64, m *meter) *cache {
	return &cache{costs: c, limit: limit, meter: m, bySpan: map[span]*region{}}
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

// register begins a registration that the caller or the helper waits for.
func (c *cache) register(now predict.Nanos, r *region) (predict.Nanos, error) {
	n := r.span.bytes()
	if c.limit > 0 && c.bytes+n > c.limit {
		return 0, errNoRoom
	}
	d := c.costs.Register.Mean(r.span.pages())
	r.state, r.until, r.known = registering, now+d, true
	r.at(now) // where it costs nothing
	c.bytes += n
	c.meter.add(now, n)
	c.live = append(c.live, r)
	c.registrations++
	return d, nil
}

// deregister begins the end of an idle region.
func (c *cache) deregister(now predict.Nanos, r *region) predict.Nanos {
	d := c.costs.Deregister.Mean(r.span.pages())
	r.state, r.until, r.expected = leaving, now+d, predict.Never
	r.at(now)
	c.bytes -= r.span.bytes()
	c.meter.add(now+d, -r.span.bytes())
	c.deregistrations++
	return d
}

// evict makes room by giving up an idle region: the one whose predicted use is latest, none being the latest of all, and
// among those the least recently used. Only regions expected after the given time count.
func (c *cache) evict(now, after predict.Nanos) (predict.Nanos, bool) {
	var worst *region
	for _, r := range c.live {
		if r.at(now) != ready || r.refs > 0 || r.expected <= after {
			continue
		}
		if worst == nil || r.expected > worst.expected || r.expected == worst.expected && r.used < worst.used {
			worst = r
		}
	}
	if worst == nil {
		return 0, false
	}
	c.evictions++
	return c.deregister(now, worst), true
}

// Registered reports whether the helper finds the region registered.
func (c *cache) Registered(id predict.Region) bool {
	s := c.regions[id].at(c.now)
	return s == ready || s == registering
}

// Register is the helper's: idle regions that nobody expects make room, others are the predictor's to choose.
func (c *cache) Register(id predict.Region) error {
	r := c.regions[id]
	if r.at(c.now) == leaving { // its end is waited for
		c.took += r.until - c.now
		r.at(r.until)
	}
	for {
		d, err := c.register(c.now+c.took, r)
		if err == nil {
			c.took += d
			return nil
		}
		d, ok := c.evict(c.now, predict.Never-1)
		if !ok {
			return predict.ErrLimit
		}
		c.took += d
	}
}

// Deregister is the helper's.
func (c *cache) Deregister(id predict.Region) bool {
	r := c.regions[id]
	if r.at(c.now) != ready || r.refs > 0 {
		return false
	}
	c.took += c.deregister(c.now, r)
	return true
}

// Expect notes when the region's next use is predicted.
func (c *cache) Expect(id predict.Region, at predict.Nanos) { c.regions[id].expected = at }

// Len is the number of regions a look-up compares.
func (c *cache) Len() int { return len(c.live) }
