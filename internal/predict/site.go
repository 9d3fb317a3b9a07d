package predict

import (
	"cmp"
	"slices"
)

// state is where a site stands.
type state uint8

const (
	idle    state = iota // no use is predicted
	queued               // in the RQ
	awaited              // its deadline has been served; its use has not been heard of
)

// site is an entry of the call-site table.
type site struct {
	sig      uint64
	region   *region
	pages    uint32
	state    state
	uses     int
	last     Nanos // latest demand stamp
	period   Nanos // shortest difference between two; 0: unknown
	lead     Nanos // what calls paid on demand in that period
	paid     Nanos // what all calls before the latest had paid
	due      Nanos // when the next use is predicted
	deadline Nanos // when the registration must be finished: due or earlier
	expiry   Nanos // when an awaited use is given up
	streak   int   // differences in a row that were much longer than the period
	least    Nanos // the shortest of them
	slow     Nanos // what calls paid in that one
	guess    guess
}

// guess is a prediction that waits to be compared with what comes: made of the use at from, for one at to. Zero: none.
type guess struct{ from, to Nanos }

// region is what is known of a region while uses of it are predicted.
type region struct {
	id    Region
	pages uint32
	sites []*site // queued or awaited
}

// earliest returns the earliest deadline of a queued site but except, and whether some such site is awaited.
func (r *region) earliest(except *site) (at Nanos, waited bool) {
	at = Never
	for _, s := range r.sites {
		switch {
		case s == except:
		case s.state == queued:
			at = min(at, s.deadline)
		case s.state == awaited:
			waited = true
		}
	}
	return at, waited
}

// observe takes a demand stamp into the period (P1). paid is what all calls before it have paid on demand. With age > 0 a period that age differences in a row exceed by more than slack gives way to the shortest of those.
func (s *site) observe(at, paid Nanos, age int, slack Nanos) {
	s.uses++
	if s.uses == 1 {
		s.last, s.paid = at, paid
		return
	}
	d, between := at-s.last, Nanos(0)
	switch {
	case d < 0:
		d = -d // transfers may complete in another order than they were called in
	case d > 0:
		between = paid - s.paid
		s.last, s.paid = at, paid
	}
	switch {
	case d == 0:
	case s.period == 0 || d < s.period:
		s.period, s.lead, s.streak = d, between, 0
	case age > 0 && d > s.period+slack:
		if s.streak++; s.streak == 1 || d < s.least {
			s.least, s.slow = d, between
		}
		if s.streak >= age {
			s.period, s.lead, s.streak = s.least, s.slow, 0
		}
	default:
		s.streak = 0
	}
}

// table is the call-site table and the regions its sites wait for.
type table struct {
	sites   map[uint64]*site
	regions map[Region]*region
	limit   int
}

// site returns the record of sig, a new one if there is none. At the limit it forgets the older half of all idle sites.
func (t *table) site(sig uint64) *site {
	s := t.sites[sig]
	if s == nil {
		if len(t.sites) >= t.limit {
			t.forgetOld()
		}
		s = &site{sig: sig}
		t.sites[sig] = s
	}
	return s
}

func (t *table) forgetOld() {
	var old []*site
	for _, s := range t.sites {
		if s.state == idle {
			old = append(old, s)
		}
	}
	slices.SortFunc(old, func(a, b *site) int {
		return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.sig, b.sig))
	})
	for _, s := range old[:(len(old)+1)/2] {
		delete(t.sites, s.sig)
	}
}

// attach makes s one of the sites that wait for the region.
func (t *table) attach(s *site, id Region, pages uint32) *region {
	r := t.regions[id]
	if r == nil {
		r = &region{id: id}
		t.regions[id] = r
	}
	r.pages = pages
	if !slices.Contains(r.sites, s) {
		r.sites = append(r.sites, s)
	}
	s.region, s.pages = r, pages
	return r
}

// detach ends that, and forgets a region for which nobody waits.
func (t *table) detach(s *site) {
	r := s.region
	if r == nil {
		return
	}
	if i := slices.Index(r.sites, s); i >= 0 {
		r.sites = slices.Delete(r.sites, i, i+1)
	}
	if len(r.sites) == 0 {
		delete(t.regions, r.id)
	}
	s.region = nil
}
