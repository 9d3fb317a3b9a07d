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

// How tune tries transfers: what disturbs makes longer, and some are faster than most.
const (
	tuneTries = 48
	tuneLeast = 3                      // tries, however long they take
	tuneTime  = 500 * time.Microsecond // for the others: what is short settles only after some
	tuneSmall = 4 << 10                // bytes
	tuneTurns = 16                     // pieces of memory, by turns
)

// tune finds out by how much transfers differ from their costs by the model: what this library's part of each takes, and
// what each byte does of those that are cut into chunks. It makes some, between both halves of the memory, whose chunks are those that the
// model is to say the costs of.
func (c *Config) tune(m *selector.Machine, small bySlot) error {
	c.NIC.Cut(m.Model)
	s := m.Selector(0) // which knows the model alone
	for i, own := range []*[selector.Protocols]selector.More{&m.Puts, &m.Gets} {
		get := i == 1
		direct, err := c.direct(get)
		if err != nil {
			return err
		}
		own[selector.Direct] = onwards(more(s, append([]tried{{small.bytes, small.past[i]}}, direct...), selector.Direct, get))
		own[selector.Register] = own[selector.Direct]
		for _, copied := range []struct {
			p    selector.Protocol
			tune *selector.Tuning
		}{{selector.Bounce, &m.Slotted}, {selector.Pipe, &m.Piped}} {
			all, err := c.copied(m, copied.p, get)
			if err != nil {
				return err
			}
			if copied.p == selector.Bounce {
				all = append([]tried{{small.bytes, small.through[i]}}, all...)
			}
			own[copied.p] = cut(s, all, copied.p, get, copied.tune)
		}
		own[selector.Pipe] = own[selector.Pipe].AtLeast(own[selector.Bounce].At(0))
		own[selector.Hybrid] = own[selector.Pipe]
		if !get {
			own[selector.Inline] = own[selector.Bounce]
		}
	}
	return nil
}

// tried is a size and what a transfer of so many bytes took, in seconds.
type tried struct {
	bytes   int
	seconds float64
}

// copied makes transfers by a protocol that copies: of sizes up to a slot, and of several, where they are cut.
func (c *Config) copied(m *selector.Machine, p selector.Protocol, get bool) (all []tried, err error) {
	if p == selector.Pipe && m.BulkSlot == 0 {
		return nil, nil
	}
	near := c.near()
	sizes, long := tuneSizes(min(m.Slot, near.Bytes)), near.Bytes/2 // so long that its bytes say how those of any longer one go on
	if m.BulkSlot > 0 && long > m.Slot {
		sizes = append(sizes, long)
	}
	for _, bytes := range sizes {
		took, err := tries(c.Sched.Now, func(k int) error { return c.one(p, get, turns(near, k, bytes)) })
		if err != nil {
			return nil, err
		}
		all = append(all, tried{bytes, took.Seconds()})
	}
	return all, nil
}

// direct makes transfers of registered memory, of all sizes that there is memory for: where who waits for a transfer lends the NIC a hand it takes
// another time than the NIC alone. None where the NIC does not register as much twice.
func (c *Config) direct(get bool) (all []tried, err error) {
	near := c.near()
	cache, err := regmgr.New(regmgr.Config{Policy: regmgr.LeavePinned, Registrar: c.NIC, Sched: c.Sched, Quiet: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cache.Close()) }()
	var hold regmgr.Hold
	if cache.Acquire(&hold, regmgr.Request{Mem: near, Access: transport.LocalWrite}) != nil {
		return nil, nil // its transfers are as the NIC's
	}
	defer cache.Release(&hold)
	for _, bytes := range tuneSizes(min(near.Bytes/2, c.NIC.Caps().MaxMessage)) {
		took, err := tries(c.Sched.Now, func(k int) error { return c.NIC.Past(get, turns(near, k, bytes), cache) })
		if err != nil {
			return nil, err
		}
		all = append(all, tried{bytes, took.Seconds()})
	}
	return all, nil
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

// tries returns the time that a third of some tries, which are numbered, stays below.
func tries(now func() time.Duration, f func(int) error) (time.Duration, error) {
	var took [tuneTries]time.Duration
	k := 0
	first := now()
	for try := range tuneTries {
		begun := now()
		if try >= tuneLeast && begun-first > tuneTime {
			break
		}
		if err := f(try); err != nil {
			return 0, err
		}
		took[k] = now() - begun
		k++
	}
	slices.Sort(took[:k])
	return took[k/3], nil
}
