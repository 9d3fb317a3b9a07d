package proto

import (
	"sync"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/transport"
)

// chain is a nic.Chain of operations on members' memory. It is one goroutine's.
type chain struct {
	nic.Chain
	n    *device
	name string
	lot  lot   // of runs that are looked at
	asks reads // of what no bucket that is held reaches
}

// chains keeps chains that are not in use, so that a call allocates none.
type chains struct {
	mu   sync.Mutex
	free []*chain
}

func (s *chains) take(n *device, name string) *chain {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c *chain
	if k := len(s.free); k > 0 {
		c, s.free = s.free[k-1], s.free[:k-1]
	} else {
		c = new(chain)
	}
	c.n, c.name = n, name
	c.Use(n.NIC, name)
	return c
}

// finish posts what the chain still holds, waits for what that brings back, and puts the chain away. err is what went
// wrong so far; the first error is returned.
func (s *chains) finish(c *chain, base mem.Range, err error) error {
	if c == nil {
		return err
	}
	if ferr := c.Flush(base); err == nil {
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
		part := src.Slice(0, min(src.Bytes, c.n.Slot))
		op := transport.Op{Kind: transport.OpWrite, RAddr: r.raddr + uint64(off), RKey: r.rkey}
		path := PathBounce
		if part.Bytes <= c.n.Inline {
			op.Flags, path = transport.FlagInline, PathInline
		}
		buf, err := c.Add(r.Rank, op, part.Bytes, mem.Range{}, nic.Nowhere)
		if err != nil {
			return err
		}
		mem.Copy(buf.Data(), part.Data())
		c.n.e.counts.add(path, r.Rank, part.Bytes)
		src = src.Slice(part.Bytes, src.Bytes-part.Bytes)
		off += part.Bytes
	}
	return nil
}

// get adds the reads of bytes at off of r to place near of dst, which is written by a later call of this chain.
func (c *chain) get(r *Remote, off int, dst mem.Range, near, bytes int) error {
	if err := c.n.reach(c.name, r, off, bytes); err != nil {
		return err
	}
	for bytes > 0 {
		k := min(bytes, c.n.Slot)
		op := transport.Op{Kind: transport.OpRead, RAddr: r.raddr + uint64(off), RKey: r.rkey}
		if _, err := c.Add(r.Rank, op, k, dst, near); err != nil {
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
	_, err := c.Add(r.Rank, op, 8, old, near)
	return err
}
