package proto

import (
	"gopgas/firehose"
	"gopgas/internal/mem"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// fetchMost is how many runs of a transfer have their buckets asked for together.
const fetchMost = 64

// fetcher asks for the buckets of many runs at once, so that their moves are under way together.
type fetcher struct{ q [fetchMost]firehose.Request }

// fetchRuns asks for the buckets of the runs from number i on, to whatever members, as many as half a share holds, and
// returns the number of the first run it did not ask for. When it returns no answer is outstanding. It keeps no bucket:
// each is let go of as soon as it is there, else transfers that hold some and wait for more could wait for each other for
// ever. Most will still be there when they are used.
func (h *hoses) fetchRuns(op string, count, i int, run func(int) Run) (next int, err error) {
	f, _ := h.fetchers.Get().(*fetcher)
	if f == nil {
		f = new(fetcher)
	}
	used := 0
	var waits [fetchMost]int32 // who is waited for: rank by request
	h.n.mu.Lock()
	for left := max(1, h.budget.Share/2); i < count && used < fetchMost && left > 0; i++ {
		r := run(i)
		if r.To.hosed == nil || r.To.Mapped.Bytes != 0 || r.To.Rank == h.n.e.Rank || r.Bytes == 0 {
			continue
		}
		v, verr := h.viewLocked(r.To)
		if verr != nil {
			continue // the run itself will say so
		}
		at := r.To.raddr + uint64(r.Far) - r.To.hosed.r.Start
		n := h.holder.Piece(v, at, uint64(r.Bytes))
		if n < uint64(r.Bytes) {
			n = min(n, v.End(at)-at) // a long run asks for itself, later
		}
		q := &f.q[used]
		if h.holder.Acquire(v, q, at, n) == firehose.Ready {
			h.letGoLocked(q)
			continue
		}
		waits[used] = int32(r.To.Rank)
		used++
		left -= int64(q.Run().Weight())
	}
	h.n.mu.Unlock()
	if used > 0 {
		h.work.Store(true)
		h.send()
	}
	for k := 0; k < used && err == nil; k++ {
		err = h.awaitAll(op, int(waits[k]), f.q[k:used])
	}
	if err == nil {
		h.fetchers.Put(f)
	} // else some request may still be under way: it stays where it is
	return i, err
}

// awaitAll returns when the first of the requests, which is to rank, waits no longer, and lets go of all that are there.
func (h *hoses) awaitAll(op string, rank int, q []firehose.Request) error {
	done := func() bool {
		h.n.mu.Lock()
		defer h.n.mu.Unlock()
		for k := range q {
			h.letGoLocked(&q[k])
		}
		return q[0].State() != firehose.Waiting
	}
	if done() {
		return nil
	}
	err := h.n.waitUntil(op, rank, done)
	if err != nil {
		h.n.mu.Lock()
		defer h.n.mu.Unlock()
		for k := range q {
			h.holder.Abandon(&q[k])
		}
		h.holder.Lost(rank, err) // as in await
	}
	return err
}

// letGoLocked releases a request if it is there.
func (h *hoses) letGoLocked(q *firehose.Request) {
	if q.State() == firehose.Ready && h.holder.Release(q) {
		h.work.Store(true)
	}
}

// fetch is fetchRuns for the chain's transfer. What the chain holds is posted before: it may be waited for.
func (c *chain) fetch(base mem.Range, count, first int, run func(int) Run) (next int, err error) {
	if err := c.flush(base); err != nil {
		return first, err
	}
	r := run(first)
	if err := c.n.connected(c.name, r.To, r.Far, r.Bytes); err != nil {
		return first, err
	}
	next, err = c.n.hoses.fetchRuns(c.name, count, first, run)
	return max(next, first+1), err
}

// hosed adds the operations of a run on memory that is registered in buckets: those whose bucket is held go out with the
// chain, one-sided; for any other the chain is posted first, then it is asked for. base is where a get's bytes go, and near
// is its place there; a put has none and src instead.
func (c *chain) hosed(r *Remote, off int, src, base mem.Range, near, bytes int) error {
	n := c.n
	if err := n.connected(c.name, r, off, bytes); err != nil {
		return err
	}
	if bytes > n.pool.SlotBytes() {
		return c.one(r, off, src, base, near, bytes) // asks for many buckets itself
	}
	for bytes > 0 {
		at, k, err := n.hoses.cut(r, off, bytes, n.pool.SlotBytes())
		if err != nil {
			return transport.NewOpError(c.name, r.Rank, err)
		}
		added, err := c.addHeld(r, at, off, src, base, near, k)
		if err == nil && !added {
			err = c.one(r, off, src, base, near, k)
		}
		if err != nil {
			return err
		}
		off, bytes = off+k, bytes-k
		if near == nowhereBack {
			src = src.Slice(k, src.Bytes-k)
		} else {
			near += k
		}
	}
	return nil
}

// one carries out a part by itself, after what the chain holds.
func (c *chain) one(r *Remote, off int, src, base mem.Range, near, bytes int) error {
	if err := c.flush(base); err != nil {
		return err
	}
	t, user := journey{name: c.name, kind: transport.OpRead, r: r, off: off, path: PathDirect}, base
	if near == nowhereBack {
		t.kind, user, near = transport.OpWrite, src, 0
	}
	user = user.Slice(near, bytes)
	if c.n.choose(&t, true, user) == selector.Direct {
		return c.n.whole(t, user, c.n.planFor(t, bytes))
	}
	return c.n.copied(t, 0, user)
}

// addHeld adds the operation on bytes of one bucket, if that is held.
func (c *chain) addHeld(r *Remote, at uint64, off int, src, base mem.Range, near, bytes int) (bool, error) {
	n := c.n
	if r.Rank == n.e.Rank || !n.hoses.holds(r, at, bytes) {
		return false, nil
	}
	op := transport.Op{Kind: transport.OpRead, RAddr: r.raddr + uint64(off)}
	path := PathBounce
	if near == nowhereBack {
		if op.Kind = transport.OpWrite; bytes <= n.inline {
			op.Flags, path = transport.FlagInline, PathInline
		}
	}
	buf, err := c.add(r.Rank, op, bytes, base, near)
	if err != nil {
		return false, err
	}
	k := c.len - 1
	key, ok := n.hoses.hold(c.ids[k], r, at, bytes, near != nowhereBack)
	if !ok { // it was given up meanwhile
		n.abandon(c.ids[k])
		if g := c.group[k]; g >= 0 {
			n.partDone(c.groups[g].id, nil)
		}
		c.len--
		return false, nil
	}
	c.ops[k].RKey = key
	if near == nowhereBack {
		copy(buf.Data(), src.Slice(0, bytes).Data())
	}
	n.e.counts.add(path, r.Rank, bytes)
	return true, nil
}

// holds reports whether the bucket that bytes at of r lie in is held now.
func (h *hoses) holds(r *Remote, at uint64, bytes int) bool {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	v, err := h.viewLocked(r)
	return err == nil && h.holder.Held(v, at, uint64(bytes))
}

// hold gets a firehose for piece id where that takes no wait.
func (h *hoses) hold(id int32, r *Remote, at uint64, bytes int, read bool) (key uint64, ok bool) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	v, err := h.viewLocked(r)
	q := &h.q[id]
	q.Put = nil
	if err != nil || !h.holder.Try(v, q, at, uint64(bytes)) {
		return 0, false
	}
	h.noteLocked(id, v, r, at, read)
	h.n.piece[id].hosed = true
	return q.Key(0), true
}
