package superpipe

import (
	"fmt"

	"gopgas/transport"
)

// A chunk from registered memory to a lease is in sub-blocks like any other, but none of it is copied: the NIC gathers payload from where it
// lies and flags from a slot. A gather list is short, so such a chunk takes several operations; it lands when all of them have.

// postGathered posts what of a chunk is not posted yet, with p.op as far as all its operations have it in common; it reports false where the
// NIC has no room for all of it, or has refused.
func (p *Pipe) postGathered(c *chunk, generation uint64) bool {
	n := blocks(c.bytes)
	if c.sent == 0 {
		seal(p.o.slot(c.slot), c.bytes, generation, p.seq)
		c.status.Store(uint32(transport.StatusOK))
		c.left.Store(1)
	}
	common := p.op[0]
	for c.sent < n {
		k := min(n-c.sent, p.o.caps.MaxSGE/2, p.o.caps.MaxMessage/Block)
		p.op[0] = common
		p.gather(c, c.sent, k)
		c.left.Add(1) // before the completion can come
		if posted, err := p.o.c.NIC.Post(p.op[:]); posted == 0 {
			c.left.Add(-1)
			if err != nil {
				p.Fail(fmt.Errorf("post %d blocks of a chunk of %d bytes: %w", k, c.bytes, err))
			}
			return false
		}
		c.sent += k
	}
	p.seq += n
	c.allPosted()
	return true
}

// allPosted says that no more of a chunk will be posted, and reports whether all that was is reported.
func (c *chunk) allPosted() bool {
	c.state.Store(chunkPosted)
	if c.left.Add(-1) > 0 {
		return false
	}
	c.state.Store(chunkLanded)
	return true
}

// gather makes p.op one of n blocks of a chunk, from block b on: two entries for each, the caller's memory and the flag from a slot. The
// flag of a short block brings along what lies between it and the payload, less than a word.
func (p *Pipe) gather(c *chunk, b, n int) {
	op, slot, part := &p.op[0], p.o.slot(c.slot), p.part(c)
	at, used, skip := 0, first(c.bytes), lead(c.bytes)
	if b > 0 {
		at, used, skip = used+(b-1)*Payload, Payload, 0
	}
	op.RAddr += uint64(b*Block + skip)
	for i := range n {
		op.SGE[2*i] = transport.SGE{Mem: part.Slice(at, used), LKey: p.t.LKey}
		from := (b+i)*Block + skip + used
		op.SGE[2*i+1] = transport.SGE{Mem: slot.Slice(from, (b+i+1)*Block-from), LKey: p.o.key.LKey}
		at, used, skip = at+used, Payload, 0
	}
	op.NSGE = uint8(2 * n)
}
