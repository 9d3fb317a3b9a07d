package proto

import (
	"slices"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// How tune tries transfers: what disturbs makes longer, and some are faster than most.
const (
	tuneTries = 12
	tuneLeast = 3                // tries, however long they take
	tuneTime  = time.Millisecond // for the others
	tuneSmall = 4 << 10          // bytes
)

// tune finds out by how much transfers differ from their costs by the model: what this library's part of each takes, and
// what each chunk of those does that are cut. It makes some, between both halves of memory that this rank can reach through its NIC.
func (n *nic) tune(m *selector.Machine, small bySlot, both mem.Range, reg transport.Region) error {
	half := both.Bytes / 2
	far := both.Slice(half, half)
	r := &Remote{Rank: n.e.Rank, Bytes: half, raddr: far.Addr(), rkey: reg.RKey, keyed: true, room: half}
	s := m.Selector(0)
	slot := n.pool.SlotBytes()
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
				if p == selector.Pipe && n.bulk.origin == nil {
					continue
				}
				took, err := n.tries(func(k int) error { return n.tryOne(p, get, r, both.Slice(k*bytes%max(1, half-bytes+1)&^7, bytes)) })
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
	bytes := half / gaugeCold / 2
	if n.bulk.origin == nil || bytes <= slot {
		return nil
	}
	for _, c := range []struct {
		p   selector.Protocol
		get bool
		to  *float64
	}{
		{selector.Bounce, false, &m.Slotted.Put},
		{selector.Bounce, true, &m.Slotted.Get},
		{selector.Pipe, false, &m.Piped.Put},
		{selector.Pipe, true, &m.Piped.Get},
	} {
		took, err := n.tries(func(int) error { return n.tryOne(c.p, c.get, r, both.Slice(0, bytes)) })
		if err != nil {
			return err
		}
		q := selector.Query{Bytes: bytes, Get: c.get, Waited: true}
		if more := s.Chunks(c.p, q) - 1; more > 0 {
			*c.to = max(0, took.Seconds()-s.Cost(c.p, q)) / float64(more)
		}
	}
	return nil
}

// tries returns the time that a third of some tries, which are numbered, stays below.
func (n *nic) tries(f func(int) error) (time.Duration, error) {
	var took [tuneTries]time.Duration
	k := 0
	first := n.e.Sched.Now()
	for try := range tuneTries {
		begun := n.e.Sched.Now()
		if try >= tuneLeast && begun-first > tuneTime {
			break
		}
		if err := f(try); err != nil {
			return 0, err
		}
		took[k] = n.e.Sched.Now() - begun
		k++
	}
	slices.Sort(took[:k])
	return took[k/3], nil
}

// tryOne makes one transfer by a protocol and waits for its end.
func (n *nic) tryOne(p selector.Protocol, get bool, r *Remote, user mem.Range) error {
	t := journey{name: "measure", kind: transport.OpWrite, r: r, path: PathDirect}
	if get {
		t.kind = transport.OpRead
	}
	var err error
	path := PathBounce
	switch {
	case p == selector.Pipe:
		path = PathPipe
		err = n.piped(t, user, p)
	case get:
		err = n.get(r, 0, user)
	default:
		err = n.put(t.name, r, 0, user)
	}
	if err == nil {
		n.e.counts.forget(path, r.Rank, user.Bytes)
		end := &n.ends[r.Rank]
		err = n.waitUntil(t.name, r.Rank, func() bool { return end.pending.Load() == 0 })
	}
	return err
}
