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
	tuneSmall  = 4 << 10                // bytes
	tuneTurns  = 16                     // pieces of memory, by turns

	tunePatience = 8 // times as long as undisturbed
)

// attempt is a transfer that is tried.
type attempt struct {
	p     selector.Protocol
	get   bool
	bytes int
	make  func(k int) error // try k
	took  []time.Duration
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
	defer func() {
		if hold != nil {
			cache.Release(hold)
		}
		err = errors.Join(err, cache.Close())
	}()
	var all []attempt
	for _, get := range [...]bool{false, true} {
		if hold != nil {
			all = append(all, c.direct(get, cache)...)
		}
		all = append(all, c.copied(m, selector.Bounce, get)...)
		all = append(all, c.copied(m, selector.Pipe, get)...)
	}
	if err := passes(c.Sched.Now, all); err != nil {
		return err
	}
	tuned(m, small, all)
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
func tuned(m *selector.Machine, small bySlot, all []attempt) {
	s := m.Selector(0) // which knows the model alone
	for i, own := range []*[selector.Protocols]selector.More{&m.Puts, &m.Gets} {
		get := i == 1
		own[selector.Direct] = onwards(more(s, append([]tried{{small.bytes, small.past[i]}}, of(all, selector.Direct, get)...), selector.Direct, get))
		own[selector.Register] = own[selector.Direct]
		own[selector.Bounce] = cut(s, append([]tried{{small.bytes, small.through[i]}}, of(all, selector.Bounce, get)...), selector.Bounce, get, &m.Slotted)
		own[selector.Pipe] = cut(s, of(all, selector.Pipe, get), selector.Pipe, get, &m.Piped).AtLeast(own[selector.Bounce].At(0))
		own[selector.Hybrid] = own[selector.Pipe]
		if !get {
			own[selector.Inline] = own[selector.Bounce]
		}
	}
}

// tried is a size and what a transfer of so many bytes took, in seconds.
type tried struct {
	bytes   int
	seconds float64
}

// of are the results of the attempts by one protocol in one direction: the medians of their tries, since what is estimated is what most transfers take.
func of(all []attempt, p selector.Protocol, get bool) (out []tried) {
	for i := range all {
		if a := &all[i]; a.p == p && a.get == get {
			slices.Sort(a.took)
			out = append(out, tried{a.bytes, a.took[(len(a.took)-1)/2].Seconds()})
		}
	}
	return out
}

// copied are transfers by a protocol that copies: of sizes up to a slot, and of several, where they are cut.
func (c *Config) copied(m *selector.Machine, p selector.Protocol, get bool) (all []attempt) {
	if p == selector.Pipe && m.BulkSlot == 0 {
		return nil
	}
	near := c.near()
	sizes, long := tuneSizes(min(m.Slot, near.Bytes)), near.Bytes/2 // so long that its bytes say how those of any longer one go on
	if m.BulkSlot > 0 && long > m.Slot {
		sizes = append(sizes, long)
	}
	for _, bytes := range sizes {
		all = append(all, attempt{p: p, get: get, bytes: bytes, make: func(k int) error { return c.one(p, get, turns(near, k, bytes)) }})
	}
	return all
}

// direct are transfers of registered memory, of all sizes that there is memory for: where who waits for a transfer lends the NIC a hand it takes
// another time than the NIC alone.
func (c *Config) direct(get bool, cache *regmgr.Manager) (all []attempt) {
	near := c.near()
	for _, bytes := range tuneSizes(min(near.Bytes/2, c.NIC.Caps().MaxMessage)) {
		do := func(k int) error { return c.NIC.Past(get, turns(near, k, bytes), cache) }
		all = append(all, attempt{p: selector.Direct, get: get, bytes: bytes, make: do})
	}
	return all
}

// tuneSizes are those that are tried up to a most.
func tuneSizes(most int) (all []int) {
	for bytes := tuneSmall; bytes <= most; bytes *= 4 {
		all = append(all, bytes)
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

// one makes one transfer by a protocol.
func (c *Config) one(p selector.Protocol, get bool, user mem.Range) error {
	if p == selector.Pipe {
		return c.NIC.Piped(get, user)
	}
	return c.NIC.Slotted(get, user)
}

// passes makes all attempts by turns, some tries of each at a time, and notes what they took. How long those of a pass have taken is reckoned by the
// quickest, so that being disturbed leaves none of the others out, unless that goes on.
func passes(now func() time.Duration, all []attempt) error {
	for range tunePasses {
		for i := range all {
			a := &all[i]
			first := now()
			least, begun := time.Duration(1<<63-1), first
			for n := time.Duration(0); n == 0 || n < tuneMost && n*least < tuneTime && begun-first < tunePatience*tuneTime; n++ {
				if err := a.make(len(a.took)); err != nil {
					return err
				}
				over := now()
				a.took = append(a.took, over-begun)
				least, begun = min(least, over-begun), over
			}
		}
	}
	return nil
}
