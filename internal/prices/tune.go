package prices

import (
	"errors"
	"slices"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// How tune tries transfers. Each is tried in several passes over all of them, so that a
// disturbance of some length, or a NIC that sleeps or is wide awake for a while, spoils no more than a part of the tries of one thing; and in each pass
// for so long that what is short settles.
const (
	tunePasses = 3                      // and as many tries at least, however long they take
	tuneTime   = 250 * time.Microsecond // for the tries of one thing in a pass
	tuneMost   = 1 << 10                // of them
	tuneLeast  = 64                     // bytes
	tuneSmall  = 4 << 10                // bytes of the next
	tuneTurns  = 16                     // pieces of memory, by turns

	tunePatience = 8                // times as long as undisturbed
	tuneLong     = time.Millisecond // what takes so long is tried once a pass
)

// attempt is a transfer that is tried.
type attempt struct {
	p      selector.Protocol
	get    bool
	bytes  int
	both   bool              // neither end is in a cache
	before func() error      // what comes before each try; nil: nothing
	make   func(k int) error // try k
	after  func() error      // what comes after what was before
	took   []time.Duration
}

// tune finds out by how much transfers differ from their costs by the model: what this library's part of each takes, and
// what each byte does of those that are cut into chunks. It makes some, between both halves of the memory, whose chunks are those that the
// model is to say the costs of.
func (c *Config) tune(m *selector.Machine, small bySlot) (err error) {
	c.NIC.Cut(m.Model)
	cache, hold, err := c.registered()
	if err != nil {
		return err
	}
	far, err := c.afar()
	defer func() {
		if hold != nil {
			cache.Release(hold)
		}
		err = errors.Join(err, cache.Close(), far.close())
	}()
	if err != nil {
		return err
	}
	var all []attempt
	for _, get := range [...]bool{false, true} {
		if hold != nil {
			all = append(all, c.direct(get, cache, far)...)
		}
		all = append(all, c.copied(m, selector.Bounce, get, far)...)
		all = append(all, c.copied(m, selector.Pipe, get, far)...)
	}
	// What is in a cache comes first: what drives it from there, and keeps the NIC busy for long, would show in all others.
	for _, cold := range [...]bool{false, true} {
		if err := passes(c.Sched.Now, all, cold); err != nil {
			return err
		}
	}
	c.tuned(m, small, all)
	return nil
}

// registered has the near half registered, as a program's memory is that is used often; hold is nil where the NIC does not register as much twice.
func (c *Config) registered() (cache *regmgr.Manager, hold *regmgr.Hold, err error) {
	if cache, err = regmgr.New(regmgr.Config{Policy: regmgr.LeavePinned, Registrar: c.NIC, Sched: c.Sched, Quiet: true}); err != nil {
		return nil, nil, err
	}
	hold = new(regmgr.Hold)
	if cache.Acquire(hold, regmgr.Request{Mem: c.near(), Access: transport.LocalWrite}) != nil {
		hold = nil // its transfers are as the NIC's
	}
	return cache, hold, nil
}

// tuned writes down what was tried.
func (c *Config) tuned(m *selector.Machine, small bySlot, all []attempt) {
	s := m.Selector(0) // which knows the model alone
	both := [...]*[selector.Protocols]selector.More{&m.Puts, &m.Gets}
	for i, own := range both {
		get := i == 1
		own[selector.Direct] = more(s, from(small.bytes, small.past[i], of(all, selector.Direct, get)), selector.Direct, get)
		own[selector.Bounce] = cut(s, from(small.bytes, small.through[i], of(all, selector.Bounce, get)), selector.Bounce, get, &m.Slotted)
		own[selector.Pipe] = cut(s, of(all, selector.Pipe, get), selector.Pipe, get, &m.Piped)
	}
	bare := *m
	bare.Puts, bare.Gets = [selector.Protocols]selector.More{}, [selector.Protocols]selector.More{}
	s = bare.Selector(0) // which knows also what the bytes take of what is cut
	for i, own := range both {
		for _, p := range [...]selector.Protocol{selector.Direct, selector.Bounce, selector.Pipe} {
			own[p] = paced(own[p], s, p, i == 1, c.beyond(), pace(all, p, i == 1))
		}
		own[selector.Direct] = onwards(own[selector.Direct])
		own[selector.Register], own[selector.Hybrid] = own[selector.Direct], own[selector.Pipe]
		if i == 0 {
			own[selector.Inline] = own[selector.Bounce]
		}
	}
}

// tried is a size and what a transfer of so many bytes took, in seconds.
type tried struct {
	bytes   int
	seconds float64
}

// of are the results of the attempts by one protocol in one direction.
func of(all []attempt, p selector.Protocol, get bool) (out []tried) {
	for i := range all {
		if a := &all[i]; a.p == p && a.get == get && !a.both && len(a.took) > 0 {
			out = append(out, tried{a.bytes, a.typical()})
		}
	}
	return out
}

// from is what was tried, of which what takes so long that is measured by itself is a part.
func from(bytes int, seconds float64, all []tried) []tried {
	if len(all) > 0 && all[0].bytes <= bytes {
		return all
	}
	return append([]tried{{bytes, seconds}}, all...)
}

// pace is what a byte takes by a protocol where neither end is in a cache, in seconds; 0: nobody has tried.
func pace(all []attempt, p selector.Protocol, get bool) float64 {
	for i := range all {
		if a := &all[i]; a.p == p && a.get == get && a.both && len(a.took) > 0 {
			return a.typical() / float64(a.bytes)
		}
	}
	return 0
}

// typical is what an attempt's tries took, in seconds: their median, since that is what most transfers take. Of those of cold memory it is the lower
// quartile: they are so few that the median of them may be what a disturbance has made of one.
func (a *attempt) typical() float64 {
	slices.Sort(a.took)
	part := 2
	if a.isCold() {
		part = 4
	}
	return a.took[(len(a.took)-1)/part].Seconds()
}

// isCold reports whether its memory is in no cache.
func (a *attempt) isCold() bool { return a.before != nil }

// warm is how many tries of a pass do not count, at most: before them others were made, for long, and have driven from the caches what
// a try finds there that comes after one of its own kind. That is the other end of a long one, and all of those that take turns.
func (a *attempt) warm() int {
	if a.isCold() {
		return 1
	}
	return tuneTurns
}

// count is how many tries of a pass count at least, unless they take very long.
func (a *attempt) count() int {
	if a.isCold() {
		return 2
	}
	return 1
}

// copied are transfers by a protocol that copies: of sizes up to a slot, and of longer ones, where they are cut. The longest says how the bytes of
// any longer one go on.
func (c *Config) copied(m *selector.Machine, p selector.Protocol, get bool, far *cold) (all []attempt) {
	if p == selector.Pipe && m.BulkSlot == 0 {
		return nil
	}
	near := c.near()
	sizes, long := tuneSizes(min(m.Slot, near.Bytes)), near.Bytes/2
	cuts := m.BulkSlot > 0 && long > m.Slot
	if cuts {
		for n := tuneSmall; n < long; n *= 4 {
			if n > m.Slot {
				sizes = append(sizes, n)
			}
		}
		sizes = append(sizes, long)
	}
	for _, bytes := range sizes {
		if far.finds(bytes) {
			all = append(all, far.attempt(p, get, bytes, false))
			continue
		}
		all = append(all, attempt{p: p, get: get, bytes: bytes, make: func(k int) error { return one(c.NIC, p, get, turns(near, k, bytes), nil) }})
	}
	if n := far.both(); cuts && n > 0 {
		all = append(all, far.attempt(p, get, n, true))
	}
	return all
}

// direct are transfers of registered memory, of all sizes that there is memory for: where who waits for a transfer lends the NIC a hand it takes
// another time than the NIC alone.
func (c *Config) direct(get bool, cache *regmgr.Manager, far *cold) (all []attempt) {
	near := c.near()
	for _, bytes := range tuneSizes(min(near.Bytes/2, c.NIC.Caps().MaxMessage)) {
		if far.finds(bytes) {
			all = append(all, far.attempt(selector.Direct, get, bytes, false))
			continue
		}
		do := func(k int) error { return one(c.NIC, selector.Direct, get, turns(near, k, bytes), cache) }
		all = append(all, attempt{p: selector.Direct, get: get, bytes: bytes, make: do})
	}
	if n := far.both(); n > 0 {
		all = append(all, far.attempt(selector.Direct, get, n, true))
	}
	return all
}

// tuneSizes are those that are tried up to a most.
func tuneSizes(most int) (all []int) {
	for bytes := tuneSmall; bytes <= most; bytes *= 4 {
		all = append(all, bytes)
	}
	if len(all) > 0 {
		all = append([]int{tuneLeast}, all...) // between them all cost the same, nearly
	}
	return all
}

// turns is the memory of try k: that of each begins where the one before has ended, as long as there is some, and of tuneTurns at most: as a
// program's buffers, which are in a cache if they are small.
func turns(near mem.Range, k, bytes int) mem.Range {
	return near.Slice(k%tuneTurns*bytes%max(1, near.Bytes-bytes+1)&^7, bytes)
}

// query is a transfer that is tried.
func query(p selector.Protocol, get bool, bytes int) selector.Query {
	return selector.Query{Bytes: bytes, Get: get, Waited: true, Covered: p == selector.Direct}
}

// more is by how much transfers took longer than s says, which knows the model alone.
func more(s *selector.Selector, all []tried, p selector.Protocol, get bool) (own selector.More) {
	for _, t := range all {
		own = append(own, struct {
			Bytes   int
			Seconds float64
		}{t.bytes, t.seconds - s.Cost(p, query(p, get, t.bytes))})
	}
	return own
}

// longest is beyond every transfer, bytes.
const longest = 1 << 40

// onwards is own which goes on in proportion to the bytes where transfers are quicker than the model says: beyond the last size it is the pace
// that differs, where this library's part is nothing. What makes them slower, or disturbed the last, does not grow.
func onwards(own selector.More) selector.More {
	last := own[len(own)-1]
	if last.Bytes < tuneSmall || last.Seconds >= 0 {
		return own
	}
	last.Seconds *= longest / float64(last.Bytes)
	last.Bytes = longest
	return append(own, last)
}

// cut is more for a protocol that cuts what is large, whose tuning it sets: what the longest took more than the one before it the bytes behind
// the first chunk have taken, and in all sizes they take as much.
func cut(s *selector.Selector, all []tried, p selector.Protocol, get bool, t *selector.Tuning) selector.More {
	own, each := more(s, all, p, get), &t.Put
	if get {
		each = &t.Get
	}
	later := func(i int) int { return s.Later(p, query(p, get, own[i].Bytes)) }
	k := len(own) - 1
	if k < 1 || later(k) <= later(k-1) {
		return own
	}
	*each = min(max(0, own[k].Seconds-own[k-1].Seconds)/float64(later(k)-later(k-1)), apart(s.Machine().Model, own[k].Bytes, get))
	for i := range own {
		own[i].Seconds -= *each * float64(later(i))
	}
	return own
}

// apart is what a byte of so many takes more if nothing overlaps, in seconds: the time of the quicker one of copy and wire. What took longer still
// was disturbed, and says nothing of longer transfers.
func apart(m superpipe.Model, bytes int, get bool) float64 {
	if get {
		m = *m.Reading()
	}
	return min(1/m.Copy(float64(bytes)), 1/m.Net)
}

// one makes one transfer by a protocol; cache keeps its memory registered if it is direct.
func one(nic NIC, p selector.Protocol, get bool, user mem.Range, cache *regmgr.Manager) error {
	switch p {
	case selector.Direct:
		return nic.Past(get, user, cache)
	case selector.Pipe:
		return nic.Piped(get, user)
	default:
		return nic.Slotted(get, user)
	}
}

// passes makes all attempts with cold memory, or all others, by turns, some tries of each at a time, and notes what they took. What the NIC has no
// room for is left out.
func passes(now func() time.Duration, all []attempt, cold bool) error {
	for range tunePasses {
		for i := range all {
			if all[i].isCold() != cold {
				continue
			}
			if err := all[i].pass(now); err != nil && !errors.Is(err, transport.ErrLimit) {
				return err
			}
		}
	}
	return nil
}

// pass makes some tries. How long they have taken is reckoned by the quickest, so that being disturbed leaves none of the others out, unless that goes on.
func (a *attempt) pass(now func() time.Duration) error {
	over := now()
	for first, n := over, a.warm(); n > 0 && over-first < tuneTime; n-- {
		took, err := a.try(now, &over)
		if err != nil {
			return err
		}
		if took >= tuneLong { // it counts, since there are few of them
			a.took = append(a.took, took)
			return nil
		}
	}
	first, least, all := over, time.Duration(1<<63-1), time.Duration(0)
	for n := 0; n == 0 || n < a.count() && all < tuneLong || n < tuneMost && time.Duration(n)*least < tuneTime && over-first < tunePatience*tuneTime; n++ {
		began := over
		took, err := a.try(now, &over)
		if err != nil {
			return err
		}
		a.took = append(a.took, took)
		least, all = min(least, over-began), all+took
	}
	return nil
}

// try makes one try, and returns how long it took, without what comes before and after; over is when all of it is, and was when it began.
func (a *attempt) try(now func() time.Duration, over *time.Duration) (took time.Duration, err error) {
	began := *over
	if a.before != nil {
		if err := a.before(); err != nil {
			return 0, errors.Join(err, a.after())
		}
		began = now()
	}
	err = a.make(len(a.took))
	*over = now()
	took = *over - began
	if a.after != nil {
		err = errors.Join(err, a.after())
		*over = now()
	}
	return took, err
}
