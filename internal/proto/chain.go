package proto

import (
	"context"
	"sync"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// chainOps is how many operations a chain can hold: they cross into the NIC together.
const chainOps = 64

// chain collects operations, to one rank or to several, and posts them together. It is one goroutine's. Pieces that
// it holds unposted are nobody's to wait for, so it posts what it has before it waits for a free one.
type chain struct {
	n    *nic
	name string
	len  int
	ops  [chainOps]transport.Op
	ids  [chainOps]int32
	rank [chainOps]int

	// Of operations that bring something back; the caller's memory is passed along with every call and not kept here,
	// so that it can lie on a stack:
	into   [chainOps]int    // where in the caller's memory it goes
	bytes  [chainOps]int    // how much it is
	group  [chainOps]int32  // its entry in groups, or -1
	groups [chainOps]Handle // a transfer for each stretch of operations to the same rank
	used   int
	last   int // the rank of the newest group

	lot lot // of runs that are looked at
}

// chains keeps chains that are not in use, so that a call allocates none.
type chains struct {
	mu   sync.Mutex
	free []*chain
}

func (s *chains) take(n *nic, name string) *chain {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c *chain
	if k := len(s.free); k > 0 {
		c, s.free = s.free[k-1], s.free[:k-1]
	} else {
		c = new(chain)
	}
	c.n, c.name = n, name
	return c
}

// finish posts what the chain still holds, waits for what that brings back, and puts the chain away. err is what went
// wrong so far; the first error is returned.
func (s *chains) finish(c *chain, base mem.Range, err error) error {
	if c == nil {
		return err
	}
	if ferr := c.flush(base); err == nil {
		err = ferr
	}
	c.lot.clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, c)
	return err
}

// put adds the writes of src to byte off of r; src may be reused on return.
func (c *chain) put(r *Remote, off int, src mem.Range) error {
	if err := c.n.reach(c.name, r, off, src.Bytes); err != nil {
		return err
	}
	for src.Bytes > 0 {
		part := src.Slice(0, min(src.Bytes, c.n.pool.SlotBytes()))
		op := transport.Op{Kind: transport.OpWrite, RAddr: r.raddr + uint64(off), RKey: r.rkey}
		path := PathBounce
		if part.Bytes <= c.n.inline {
			op.Flags, path = transport.FlagInline, PathInline
		}
		buf, err := c.add(r.Rank, op, part.Bytes, mem.Range{}, nowhereBack)
		if err != nil {
			return err
		}
		copy(buf.Data(), part.Data())
		c.n.e.counts.add(path, r.Rank, part.Bytes)
		src = src.Slice(part.Bytes, src.Bytes-part.Bytes)
		off += part.Bytes
	}
	return nil
}

// nowhereBack is the place of what an operation does not bring back.
const nowhereBack = -1

// get adds the reads of bytes at off of r to place near of dst, which is written by a later call of this chain.
func (c *chain) get(r *Remote, off int, dst mem.Range, near, bytes int) error {
	if err := c.n.reach(c.name, r, off, bytes); err != nil {
		return err
	}
	for bytes > 0 {
		k := min(bytes, c.n.pool.SlotBytes())
		op := transport.Op{Kind: transport.OpRead, RAddr: r.raddr + uint64(off), RKey: r.rkey}
		if _, err := c.add(r.Rank, op, k, dst, near); err != nil {
			return err
		}
		c.n.e.counts.add(PathBounce, r.Rank, k)
		near, off, bytes = near+k, off+k, bytes-k
	}
	return nil
}

// fetchAdd adds a 64-bit fetch-add whose old value goes to place near of old.
func (c *chain) fetchAdd(r *Remote, off int, v uint64, old mem.Range, near int) error {
	if err := c.n.reachWord(c.name, r, off); err != nil {
		return err
	}
	op := transport.Op{Kind: transport.OpFetchAdd, RAddr: r.raddr + uint64(off), RKey: r.rkey, Arg0: v}
	c.n.e.counts.add(PathNICAtomic, r.Rank, 8)
	_, err := c.add(r.Rank, op, 8, old, near)
	return err
}

// add takes a piece for op and returns its buffer. What the operation brings goes to place near of base, unless that is
// nowhereBack. All calls of a chain that bring something back have the same base.
func (c *chain) add(rank int, op transport.Op, bytes int, base mem.Range, near int) (mem.Range, error) {
	n := c.n
	if c.len == chainOps {
		if err := c.flush(base); err != nil {
			return mem.Range{}, err
		}
	}
	wantSlot := bytes > scratchBytes
	g, opened := int32(-1), false
	var err error
	if near != nowhereBack {
		if g, opened, err = c.groupOf(rank, base); err != nil {
			return mem.Range{}, err
		}
	}
	id, ok := n.tryAcquire(rank, wantSlot)
	if !ok && c.len > 0 {
		if err := c.flush(base); err != nil { // ends the group too
			return mem.Range{}, err
		}
		return c.add(rank, op, bytes, base, near)
	}
	if !ok {
		if id, err = n.acquire(c.name, rank, wantSlot); err != nil {
			if opened {
				_ = c.flush(base)
			}
			return mem.Range{}, err
		}
	}
	if g >= 0 {
		n.mu.Lock()
		n.table.Join(c.groups[g].id, id)
		n.table.Piece(id).Keep = true
		n.mu.Unlock()
	}
	buf, key := n.buffer(id, bytes)
	op.Cookie, op.NSGE = uint64(id), 1
	op.Flags |= transport.FlagSignaled
	op.SGE[0] = transport.SGE{Mem: buf, LKey: key}
	k := c.len
	c.ops[k], c.ids[k], c.rank[k] = op, id, rank
	c.into[k], c.bytes[k], c.group[k] = near, bytes, g
	c.len++
	return buf, nil
}

// groupOf returns the transfer that the next operation to rank belongs to, and whether it is a new one.
func (c *chain) groupOf(rank int, base mem.Range) (g int32, opened bool, err error) {
	if c.used > 0 && c.last == rank {
		return int32(c.used - 1), false, nil
	}
	h, ok := c.n.tryBegin(c.name, rank)
	if !ok && c.len > 0 {
		if err := c.flush(base); err != nil {
			return 0, false, err
		}
	}
	if !ok {
		if h, err = c.n.begin(c.name, rank); err != nil {
			return 0, false, err
		}
	}
	c.groups[c.used], c.last = h, rank
	c.used++
	return int32(c.used - 1), true, nil
}

// flush posts the chain and, if some of it brings something back, waits for that and copies it to its place of base.
func (c *chain) flush(base mem.Range) error {
	posted, err := c.post()
	n := c.n
	for k := posted; k < c.len; k++ {
		n.abandon(c.ids[k])
		if c.group[k] >= 0 {
			n.partDone(c.groups[c.group[k]].id, nil)
		}
	}
	for g := range c.used {
		n.partDone(c.groups[g].id, nil) // the part that kept it open
	}
	for g := range c.used {
		werr := c.groups[g].Wait(context.Background())
		if err == nil {
			err = werr
		}
		for k := range posted {
			if int(c.group[k]) != g {
				continue
			}
			if werr == nil {
				buf, _ := n.buffer(c.ids[k], c.bytes[k])
				copy(base.Slice(c.into[k], c.bytes[k]).Data(), buf.Data())
			}
			n.give(kept{id: c.ids[k]})
		}
	}
	c.len, c.used = 0, 0
	return err
}

// post hands the operations to the NIC, in order; it waits for connections, and while the NIC has no room, and returns
// how many it took.
func (c *chain) post() (posted int, err error) {
	for posted < c.len && err == nil {
		// A connection that must be waited for is only waited for with no other one held: its mender may need that.
		end := posted
		for end < c.len && c.n.tryEnter(c.rank[end]) {
			c.prepare(end)
			end++
		}
		if end == posted {
			if _, err = c.n.enter(c.name, c.rank[posted]); err != nil {
				break
			}
			c.prepare(end)
			end++
		}
		posted, err = c.postTo(posted, end)
	}
	return posted, err
}

// prepare completes operation k, whose endpoint has been entered.
func (c *chain) prepare(k int) {
	n, e, id := c.n, &c.n.ends[c.rank[k]], c.ids[k]
	c.ops[k].EP = e.now()
	n.table.Op(id)[0] = c.ops[k]
	n.table.Piece(id).Seq = e.seq.Add(1)
}

// postTo posts up to end, and leaves the endpoints of what it could not post.
func (c *chain) postTo(posted, end int) (int, error) {
	n := c.n
	var refused error
	try := func() bool {
		if !n.push() {
			return false
		}
		for posted < end && refused == nil {
			k, err := n.d.Post(c.ops[posted:end])
			posted, refused = posted+k, err
			if k == 0 {
				break
			}
		}
		return posted == end || refused != nil
	}
	var err error
	if !try() {
		err = n.waitUntil(c.name, c.rank[posted], try)
	}
	if err == nil && refused != nil {
		err = transport.NewOpError(c.name, c.rank[posted], refused)
	}
	for k := posted; k < end; k++ {
		n.ends[c.rank[k]].leave()
	}
	return posted, err
}
