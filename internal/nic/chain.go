package nic

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// Chain collects operations, to one rank or to several, and posts them together. It is one goroutine's. Pieces that
// it holds unposted are nobody's to wait for, so it posts what it has before it waits for a free one. It is used after Use, and again
// after each Flush.
type Chain struct {
	n    *NIC
	name string
	len  int
	ops  [Batch]transport.Op
	ids  [Batch]int32
	rank [Batch]int

	// Of operations that bring something back; the caller's memory is passed along with every call and not kept here,
	// so that it can lie on a stack:
	into   [Batch]int    // where in the caller's memory it goes
	bytes  [Batch]int    // how much it is
	group  [Batch]int32  // its entry in groups, or -1
	groups [Batch]Handle // a transfer for each stretch of operations to the same rank
	used   int
	last   int // the rank of the newest group
}

// Nowhere is the place of what an operation does not bring back.
const Nowhere = -1

// Use makes an empty chain collect operations of n that errors call name.
func (c *Chain) Use(n *NIC, name string) { c.n, c.name = n, name }

// Last is the operation that was added last, and its piece. The chain is not empty, and nothing of it was posted since.
func (c *Chain) Last() (op *transport.Op, id int32) { return &c.ops[c.len-1], c.ids[c.len-1] }

// Drop takes back the operation that was added last, as Last.
func (c *Chain) Drop() {
	c.len--
	c.give(c.len)
}

// give frees operation k, which was not posted.
func (c *Chain) give(k int) {
	c.n.Abandon(c.ids[k])
	if g := c.group[k]; g >= 0 {
		c.n.PartDone(c.groups[g], nil)
	}
}

// Add takes a piece for op to rank, which lacks its endpoint, its cookie and its memory here, and returns a buffer of so many bytes. What the operation brings goes to place near of base, unless that is
// Nowhere. All calls of a chain that bring something back have the same base.
func (c *Chain) Add(rank int, op transport.Op, bytes int, base mem.Range, near int) (mem.Range, error) {
	n := c.n
	if c.len == Batch {
		if err := c.Flush(base); err != nil {
			return mem.Range{}, err
		}
	}
	wantSlot := bytes > ScratchBytes
	g, opened := int32(-1), false
	var err error
	if near != Nowhere {
		if g, opened, err = c.groupOf(rank, base); err != nil {
			return mem.Range{}, err
		}
	}
	id, ok := n.TryAcquire(rank, wantSlot)
	if !ok && c.len > 0 {
		if err := c.Flush(base); err != nil { // ends the group too
			return mem.Range{}, err
		}
		return c.Add(rank, op, bytes, base, near)
	}
	if !ok {
		if id, err = n.Acquire(c.name, rank, wantSlot); err != nil {
			if opened {
				_ = c.Flush(base)
			}
			return mem.Range{}, err
		}
	}
	if g >= 0 {
		n.joinKept(c.groups[g], id)
	}
	buf, key := n.Buffer(id, bytes)
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
func (c *Chain) groupOf(rank int, base mem.Range) (g int32, opened bool, err error) {
	if c.used > 0 && c.last == rank {
		return int32(c.used - 1), false, nil
	}
	h, ok := c.n.TryBegin(c.name, rank)
	if !ok && c.len > 0 {
		if err := c.Flush(base); err != nil {
			return 0, false, err
		}
	}
	if !ok {
		if h, err = c.n.Begin(c.name, rank); err != nil {
			return 0, false, err
		}
	}
	c.groups[c.used], c.last = h, rank
	c.used++
	return int32(c.used - 1), true, nil
}

// Flush posts the chain and, if some of it brings something back, waits for that and copies it to its place of base.
func (c *Chain) Flush(base mem.Range) error {
	posted, err := c.post()
	n := c.n
	for k := posted; k < c.len; k++ {
		c.give(k)
	}
	for g := range c.used {
		n.PartDone(c.groups[g], nil) // the part that kept it open
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
				buf, _ := n.Buffer(c.ids[k], c.bytes[k])
				mem.Copy(base.Slice(c.into[k], c.bytes[k]).Data(), buf.Data())
			}
			n.Give(c.ids[k])
		}
	}
	c.len, c.used = 0, 0
	return err
}

// post hands the operations to the NIC, in order; it waits for connections, and while the NIC has no room, and returns
// how many it took.
func (c *Chain) post() (posted int, err error) {
	for posted < c.len && err == nil {
		// A connection that must be waited for is only waited for with no other one held: its mender may need that.
		end := posted
		for end < c.len {
			seq, ok := c.n.tryEnter(c.n.ends[c.rank[end]])
			if !ok {
				break
			}
			c.prepare(end, seq)
			end++
		}
		if end == posted {
			var seq uint64
			if _, seq, err = c.n.enter(c.name, c.rank[posted]); err != nil {
				break
			}
			c.prepare(end, seq)
			end++
		}
		posted, err = c.postTo(posted, end)
	}
	return posted, err
}

// prepare completes operation k, which has entered its endpoint as number seq.
func (c *Chain) prepare(k int, seq uint64) {
	n, e, id := c.n, c.n.ends[c.rank[k]], c.ids[k]
	c.ops[k].EP = e.now()
	n.table.Op(id)[0] = c.ops[k]
	n.table.Piece(id).Seq = seq
}

// postTo posts up to end, and leaves the endpoints of what it could not post.
func (c *Chain) postTo(posted, end int) (int, error) {
	n := c.n
	var refused error
	try := func() bool {
		if !n.push() {
			return false
		}
		for posted < end && refused == nil {
			k, err := n.Domain.Post(c.ops[posted:end])
			posted, refused = posted+k, err
			if k == 0 {
				break
			}
		}
		return posted == end || refused != nil
	}
	var err error
	if !try() {
		err = n.WaitUntil(c.name, c.rank[posted], try)
	}
	if err == nil && refused != nil {
		err = transport.NewOpError(c.name, c.rank[posted], refused)
	}
	for k := posted; k < end; k++ {
		n.leave(n.ends[c.rank[k]])
	}
	return posted, err
}
