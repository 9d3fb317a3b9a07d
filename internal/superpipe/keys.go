package superpipe

import (
	"fmt"

	"gopgas/transport"
)

// keys is a target's memory that has a key for each stretch of it, a bucket perhaps, as a transfer sees it once it was told so by Reach.
// A pipe asks under its lock, so Key waits for nothing.
type keys interface {
	// Key returns what opens the target's memory at byte at of the transfer, and up to which byte of the transfer it does.
	Key(at int) (key uint64, end int)
}

// A chunk may lie in several stretches: then it takes an operation for each, and lands when all of them have.

// postByKeys posts what of a chunk is not posted yet, one operation for each stretch, with p.op as if there were one for all; it reports
// false where the NIC has no room for all of it, or has refused.
func (p *Pipe) postByKeys(c *chunk) bool {
	if c.sent == 0 {
		c.status.Store(uint32(transport.StatusOK))
		c.left.Store(1)
	}
	all := p.op[0]
	for c.sent < c.bytes {
		at := c.offset + c.sent
		key, end := p.t.Keys.Key(at)
		n := min(c.bytes-c.sent, end-at)
		op := &p.op[0]
		*op = all
		op.RAddr, op.RKey, op.SGE[0].Mem = all.RAddr+uint64(c.sent), key, all.SGE[0].Mem.Slice(c.sent, n)
		c.left.Add(1) // before the completion can come
		if posted, err := p.o.c.NIC.Post(p.op[:]); posted == 0 {
			c.left.Add(-1)
			if err != nil {
				p.Fail(fmt.Errorf("post %d of %d bytes of a chunk: %w", n, c.bytes, err))
			}
			return false
		}
		c.sent += n
	}
	c.allPosted()
	return true
}

// Slots of pipes that do not know their keys yet, and may not learn them before others are over, are never all: those others may need
// some to come to their end.

// takeSlot returns a free slot, or false; early says that it is for such a pipe.
func (o *Origin) takeSlot(early bool) (slot int32, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if early && o.early >= o.c.Slots-o.c.Fold {
		return 0, false
	}
	if slot, ok = o.pool.Take(); ok && early {
		o.early++
	}
	return slot, ok
}

// settleEarly says that a pipe with so many early slots knows its keys now, or has ended.
func (o *Origin) settleEarly(slots int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.early -= slots
}
