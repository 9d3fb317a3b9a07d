package proto

import (
	"gopgas/internal/hose"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// fetch asks for the buckets of the runs of a transfer from number first on, as many as may be asked for together, and returns the
// number of the first that was not asked for. What the chain holds is posted before: it may be waited for.
func (c *chain) fetch(base mem.Range, count, first int, run func(int) Run) (next int, err error) {
	if err := c.Chain.Flush(base); err != nil { // what is asked for ends without anybody
		return first, err
	}
	r := run(first)
	if err := c.n.connected(c.name, r.To, r.Far, r.Bytes); err != nil {
		return first, err
	}
	next, err = c.n.hoses.FetchRuns(c.name, count, first, func(i int) hose.Span {
		r := run(i)
		if r.To.hosed == nil || r.To.Mapped.Bytes != 0 || r.To.Rank == c.n.e.Rank {
			return hose.Span{}
		}
		return hose.Span{Far: r.To.hosed, Addr: r.To.raddr + uint64(r.Far), Bytes: r.Bytes}
	})
	return max(next, first+1), err
}

// hosed adds the operations of a run on memory that is registered in buckets: those whose bucket is held go out with the
// chain, one-sided; for any other the chain is posted first, then it is asked for, reads several at once. base is where a get's bytes go, and near
// is its place there; a put has none and src instead.
func (c *chain) hosed(r *Remote, off int, src, base mem.Range, near, bytes int) error {
	n := c.n
	if err := n.connected(c.name, r, off, bytes); err != nil {
		return err
	}
	if bytes > n.Slot {
		return c.one(r, off, src, base, near, bytes) // asks for many buckets itself
	}
	for bytes > 0 {
		k, err := n.hoses.Cut(r.hosed, r.raddr+uint64(off), bytes, n.Slot)
		if err != nil {
			return transport.NewOpError(c.name, r.Rank, err)
		}
		added, err := c.addHeld(r, off, src, base, near, k)
		if err == nil && !added {
			err = c.one(r, off, src, base, near, k)
		}
		if err != nil {
			return err
		}
		off, bytes = off+k, bytes-k
		if near == nic.Nowhere {
			src = src.Slice(k, src.Bytes-k)
		} else {
			near += k
		}
	}
	return nil
}

// one carries out a part by itself, after what the chain holds; or it begins to read it, which goes on beside other such reads.
func (c *chain) one(r *Remote, off int, src, base mem.Range, near, bytes int) error {
	if err := c.Chain.Flush(base); err != nil {
		return err
	}
	t, user := journey{name: c.name, kind: transport.OpRead, r: r, off: off, path: PathDirect}, base
	at := near
	if near == nic.Nowhere {
		t.kind, user, at = transport.OpWrite, src, 0
	}
	user = user.Slice(at, bytes)
	p := c.n.choose(&t, true, user)
	if p != selector.Direct && t.kind == transport.OpRead && bytes <= c.n.Slot {
		return c.ask(r, off, base, near, bytes)
	}
	if err := c.land(base, 0); err != nil {
		return err
	}
	if p == selector.Direct {
		return c.n.whole(&t, user, c.n.planFor(t, bytes))
	}
	return c.n.copied(&t, 0, user)
}

// addHeld adds the operation on bytes of one bucket, if that is held.
func (c *chain) addHeld(r *Remote, off int, src, base mem.Range, near, bytes int) (bool, error) {
	n := c.n
	if r.Rank == n.e.Rank || !n.hoses.Held(r.hosed, r.raddr+uint64(off), bytes) {
		return false, nil
	}
	op := transport.Op{Kind: transport.OpRead, RAddr: r.raddr + uint64(off)}
	path := PathBounce
	if near == nic.Nowhere {
		if op.Kind = transport.OpWrite; bytes <= n.Inline {
			op.Flags, path = transport.FlagInline, PathInline
		}
	}
	buf, err := c.Add(r.Rank, op, bytes, base, near)
	if err != nil {
		return false, err
	}
	last, id := c.Last()
	key, ok := n.hold(id, r, off, bytes, near != nic.Nowhere)
	if !ok { // it was given up meanwhile
		c.Drop()
		return false, nil
	}
	last.RKey = key
	if near == nic.Nowhere {
		mem.Copy(buf.Data(), src.Slice(0, bytes).Data())
	}
	n.e.counts.add(path, r.Rank, bytes)
	return true, nil
}
