package proto

import (
	"slices"
	"sync"

	"gopgas/internal/mem"
)

// commons is the memory that the members of groups map of each other, all of all: what one of them says of such memory by an address of its own, the others
// find where they have mapped it, without a key.
type commons struct {
	mu  sync.RWMutex
	own []common           // this rank's parts, in the order of addresses
	of  map[home]mem.Range // the others' parts, where this rank has mapped them
}

// common is this rank's part of an exposure, and who has mapped it.
type common struct {
	local mem.Range
	ranks []int // in their order
}

// home is whose a part is, and where it begins there. What a rank exposes at a place where it exposed something before is another part to all who map it, before
// it can be told of: so whoever looks for the new one does not find the old one.
type home struct {
	rank int
	addr uint64
}

// meet adds the others' parts of xp, all of which this rank maps. It comes before the others hear that it does: the first of them may tell of his part as soon as he
// knows that all do, when the last one does not know it yet.
func (c *commons) meet(xp *Exposure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	xp.common = true
	if c.of == nil {
		c.of = map[home]mem.Range{}
	}
	for _, r := range xp.Of {
		if r.Bytes > 0 && r.Rank != xp.e.Rank {
			c.of[home{r.Rank, r.raddr}] = r.Mapped
		}
	}
}

// join adds this rank's part of xp, which all members map.
func (c *commons) join(xp *Exposure) {
	if xp.Local.Bytes == 0 {
		return
	}
	ranks := make([]int, len(xp.Of))
	for m, r := range xp.Of {
		ranks[m] = r.Rank
	}
	slices.Sort(ranks)
	c.mu.Lock()
	defer c.mu.Unlock()
	i, _ := c.find(xp.Local.Addr())
	c.own = slices.Insert(c.own, i, common{xp.Local, ranks})
}

// leave takes out what meet and join have added, if they have: another exposure may be of the same memory.
func (c *commons) leave(xp *Exposure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !xp.common {
		return
	}
	xp.common = false
	if i, found := c.find(xp.Local.Addr()); found {
		c.own = slices.Delete(c.own, i, i+1)
	}
	for _, r := range xp.Of {
		if at := (home{r.Rank, r.raddr}); r.Bytes > 0 && c.of[at].Addr() == r.Mapped.Addr() { // else another part lies there by now
			delete(c.of, at)
		}
	}
}

// find returns the number of the part that begins at addr, or where such a one would stand.
func (c *commons) find(addr uint64) (i int, found bool) {
	return slices.BinarySearchFunc(c.own, addr, func(p common, addr uint64) int {
		switch at := p.local.Addr(); {
		case at < addr:
			return -1
		case at > addr:
			return 1
		}
		return 0
	})
}

// home returns where the part begins in which all of r lies, if each of ranks has mapped that.
func (c *commons) home(r mem.Range, ranks []int) (addr uint64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	i, found := c.find(r.Addr())
	if !found {
		i--
	}
	if i < 0 || !c.own[i].local.Contains(r) {
		return 0, false
	}
	p := &c.own[i]
	for _, rank := range ranks {
		if _, ok := slices.BinarySearch(p.ranks, rank); !ok {
			return 0, false
		}
	}
	return p.local.Addr(), true
}

// at is what a rank has at addr, to the end of the part that begins at its address base; nothing if this rank has not mapped that.
func (c *commons) at(rank int, base, addr uint64) (r mem.Range, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok = c.of[home{rank, base}]
	if off := addr - base; ok && off <= uint64(r.Bytes) {
		return r.Slice(int(off), r.Bytes-int(off)), true
	}
	return mem.Range{}, false
}

// OfferMapped has o offer r to ranks, if they have mapped it, and reports whether they have.
func (e *Engine) OfferMapped(o *Offer, r mem.Range, ranks []int) bool {
	base, ok := e.commons.home(r, ranks)
	if ok {
		o.Addr, o.Key = r.Addr(), base
	}
	return ok
}

// OfferedMapped is how this rank reaches what another one offers to those who have mapped it, this rank among them; ok is false if that is not so.
func (e *Engine) OfferedMapped(rank int, addr, key uint64) (r Remote, ok bool) {
	mapped, ok := e.commons.at(rank, key, addr)
	return Remote{Rank: rank, Bytes: mapped.Bytes, Mapped: mapped}, ok
}
