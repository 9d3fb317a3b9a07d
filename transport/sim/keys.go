package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// A key is a place in the table (low bits) and a random number (the rest), so that an old key of a place that was
// given anew does not fit, and no key can be computed from another.
const keyIndexBits = 20

// errUnknownRegion is returned by Deregister for what was never registered or is no more.
var errUnknownRegion = errors.New("deregister: no such region; it was deregistered before or belongs to another domain")

// region is registered memory.
type region struct {
	mem    mem.Range
	access transport.Access
	pub    transport.Region
}

// table is what one rank has registered.
type table struct {
	maxRegions int
	maxPinned  int64
	rng        *rand.Rand
	slots      []*region
	free       []int
	live       int
	pinned     int64
}

func (t *table) add(r mem.Range, a transport.Access) (transport.Region, error) {
	if t.maxRegions > 0 && t.live >= t.maxRegions || t.live >= 1<<keyIndexBits {
		return transport.Region{}, &transport.LimitError{
			What:  "a registration on the simulated NIC",
			Found: fmt.Sprintf("%d registrations in use, the most there may be", t.live), Needed: "1 more",
			Setting: "deregister some, or raise Config.MaxRegions",
		}
	}
	if t.maxPinned > 0 && t.pinned+int64(r.Bytes) > t.maxPinned {
		return transport.Region{}, &transport.LimitError{
			What:  fmt.Sprintf("%d bytes of registered memory on the simulated NIC", r.Bytes),
			Found: fmt.Sprintf("%d of %d bytes free", t.maxPinned-t.pinned, t.maxPinned), Needed: fmt.Sprintf("%d bytes", r.Bytes),
			Setting: "deregister some, or raise Config.MaxPinned",
		}
	}
	i := len(t.slots)
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.slots = append(t.slots, nil)
	}
	key := func() uint64 { return t.rng.Uint64()<<keyIndexBits | uint64(i) }
	reg := &region{mem: r, access: a, pub: transport.Region{ID: key(), LKey: key(), RKey: key()}}
	t.slots[i] = reg
	t.live++
	t.pinned += int64(r.Bytes)
	return reg.pub, nil
}

// remove ends a registration and returns its bytes.
func (t *table) remove(pub transport.Region) (int, error) {
	reg := t.at(pub.ID)
	if reg == nil || reg.pub != pub {
		return 0, errUnknownRegion
	}
	i := int(pub.ID & (1<<keyIndexBits - 1))
	t.slots[i] = nil
	t.free = append(t.free, i)
	t.live--
	t.pinned -= int64(reg.mem.Bytes)
	return reg.mem.Bytes, nil
}

func (t *table) at(key uint64) *region {
	if i := key & (1<<keyIndexBits - 1); i < uint64(len(t.slots)) {
		return t.slots[i]
	}
	return nil
}

// local returns the region that lkey names if it covers r with the rights need.
func (t *table) local(r mem.Range, lkey uint64, need transport.Access) *region {
	reg := t.at(lkey)
	if reg == nil || reg.pub.LKey != lkey || reg.access&need != need || !reg.mem.Contains(r) {
		return nil
	}
	return reg
}

// remote returns n bytes at address addr; ok is false where key, bounds or rights do not allow the access.
func (t *table) remote(addr, rkey uint64, n int, need transport.Access) (r mem.Range, ok bool) {
	reg := t.at(rkey)
	if reg == nil || reg.pub.RKey != rkey || reg.access&need != need {
		return mem.Range{}, false
	}
	off, size := addr-reg.mem.Addr(), uint64(reg.mem.Bytes)
	if off > size || uint64(n) > size-off {
		return mem.Range{}, false
	}
	return reg.mem.Slice(int(off), n), true
}
