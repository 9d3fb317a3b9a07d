package prices

import (
	"slices"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/selector"
)

// How tune tries transfers: what disturbs makes longer, and some are faster than most.
const (
	tuneTries = 48
	tuneLeast = 3                      // tries, however long they take
	tuneTime  = 500 * time.Microsecond // for the others: what is short settles only after some
	tuneSmall = 4 << 10                // bytes
)

// tune finds out by how much transfers differ from their costs by the model: what this library's part of each takes, and
// what each chunk of those does that are cut. It makes some, between both halves of the memory.
func (c *Config) tune(m *selector.Machine, small bySlot) error {
	near := c.near()
	half := near.Bytes
	s := m.Selector(0)
	slot, piped := m.Slot, m.BulkSlot > 0
	for i, own := range []*[selector.Protocols]selector.More{&m.Puts, &m.Gets} {
		get := i == 1
		more := func(p selector.Protocol, bytes int, took float64) {
			q := selector.Query{Bytes: bytes, Get: get, Waited: true, Covered: p == selector.Direct}
			own[p] = append(own[p], struct {
				Bytes   int
				Seconds float64
			}{bytes, took - s.Cost(p, q)})
		}
		more(selector.Direct, small.bytes, small.past[i])
		more(selector.Bounce, small.bytes, small.through[i])
		own[selector.Register] = own[selector.Direct]
		if !get {
			own[selector.Inline] = own[selector.Bounce]
		}
		for bytes := tuneSmall; bytes <= min(slot, half); bytes *= 4 {
			for _, p := range []selector.Protocol{selector.Bounce, selector.Pipe} {
				if p == selector.Pipe && !piped {
					continue
				}
				took, err := tries(c.Sched.Now, func(k int) error {
					return c.one(p, get, near.Slice(k*bytes%max(1, half-bytes+1)&^7, bytes))
				})
				if err != nil {
					return err
				}
				more(p, bytes, took.Seconds())
			}
		}
		own[selector.Pipe] = own[selector.Pipe].AtLeast(own[selector.Bounce].At(0))
		own[selector.Hybrid] = own[selector.Pipe]
	}
	s = m.Selector(0) // which knows these
	bytes := half / coldest / 2
	if !piped || bytes <= slot {
		return nil
	}
	for _, chunked := range []struct {
		p   selector.Protocol
		get bool
		to  *float64
	}{
		{selector.Bounce, false, &m.Slotted.Put},
		{selector.Bounce, true, &m.Slotted.Get},
		{selector.Pipe, false, &m.Piped.Put},
		{selector.Pipe, true, &m.Piped.Get},
	} {
		took, err := tries(c.Sched.Now, func(int) error { return c.one(chunked.p, chunked.get, near.Slice(0, bytes)) })
		if err != nil {
			return err
		}
		q := selector.Query{Bytes: bytes, Get: chunked.get, Waited: true}
		if more := s.Chunks(chunked.p, q) - 1; more > 0 {
			*chunked.to = max(0, took.Seconds()-s.Cost(chunked.p, q)) / float64(more)
		}
	}
	return nil
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
