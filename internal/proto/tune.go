package proto

import (
	"slices"
	"time"

	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// tuneTries is how often tune tries a transfer.
const tuneTries = 3

// tune finds out by how much transfers that are cut into chunks differ from their costs by the model: it makes some, between
// both halves of memory that this rank can reach through its NIC, and takes the median of each.
func (n *nic) tune(m *selector.Machine, both mem.Range, reg transport.Region) error {
	half := both.Bytes / 2
	bytes := half / gaugeCold / 2
	if n.bulk.origin == nil || bytes <= n.pool.SlotBytes() {
		return nil
	}
	far := both.Slice(half, half)
	r := &Remote{Rank: n.e.Rank, Bytes: half, raddr: far.Addr(), rkey: reg.RKey, keyed: true, room: half}
	s := m.Selector(0)
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
		var took [tuneTries]time.Duration
		for i := range took {
			begun := n.e.Sched.Now()
			if err := n.tryOne(c.p, c.get, r, both.Slice(0, bytes)); err != nil {
				return err
			}
			took[i] = n.e.Sched.Now() - begun
		}
		slices.Sort(took[:])
		q := selector.Query{Bytes: bytes, Get: c.get, Waited: true}
		if more := s.Chunks(c.p, q) - 1; more > 0 {
			*c.to = max(0, took[tuneTries/2].Seconds()-s.Cost(c.p, q)) / float64(more)
		}
	}
	return nil
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
