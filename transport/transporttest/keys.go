package transporttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// A key is a place in the table (low bits) and a random number (the rest), so that an old key of a place that
// was given anew does not fit, and one key cannot be computed from another.
const keyIndexBits = 20

// errUnknownRegion is returned by Deregister for what was never registered or is no more.
var errUnknownRegion = errors.New("deregister: no such region; it was deregistered before or belongs to another domain")

// region is registered memory. mu is held in read mode while an agent moves bytes of a remote operation.
type region struct {
	mu     sync.RWMutex
	dead   bool // under mu
	mem    mem.Range
	access transport.Access
	pub    transport.Region
}

// table is the registration table of one domain.
type table struct {
	maxRegions int
	maxPinned  int64

	mu     sync.RWMutex
	rng    *rand.ChaCha8
	slots  []*region
	free   []int
	live   int
	pinned int64
}

func newTable(c FabricConfig, rank int) *table {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(c.Seed >> (8 * i))
		seed[8+i] = byte(rank >> (8 * i))
	}
	return &table{maxRegions: c.MaxRegions, maxPinned: c.MaxPinned, rng: rand.NewChaCha8(seed)}
}

func (t *table) add(r mem.Range, a transport.Access) (transport.Region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.maxRegions > 0 && t.live >= t.maxRegions || t.live >= 1<<keyIndexBits {
		return transport.Region{}, &transport.LimitError{
			What:  "a registration on the loop-back NIC",
			Found: fmt.Sprintf("%d of %d registrations in use", t.live, t.maxRegions), Needed: "1 more",
			Setting: "deregister some, or raise FabricConfig.MaxRegions",
		}
	}
	if t.maxPinned > 0 && t.pinned+int64(r.Bytes) > t.maxPinned {
		return transport.Region{}, &transport.LimitError{
			What:    fmt.Sprintf("%d bytes of registered memory on the loop-back NIC", r.Bytes),
			Found:   fmt.Sprintf("%d of %d bytes free", t.maxPinned-t.pinned, t.maxPinned),
			Needed:  fmt.Sprintf("%d bytes", r.Bytes),
			Setting: "deregister some, or raise FabricConfig.MaxPinned",
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

func (t *table) remove(pub transport.Region) error {
	t.mu.Lock()
	reg := t.atLocked(pub.ID)
	if reg == nil || reg.pub != pub {
		t.mu.Unlock()
		return errUnknownRegion
	}
	i := int(pub.ID & (1<<keyIndexBits - 1))
	t.slots[i] = nil
	t.free = append(t.free, i)
	t.live--
	t.pinned -= int64(reg.mem.Bytes)
	t.mu.Unlock()
	reg.revoke()
	return nil
}

// revokeAll makes every key of the table void and returns when no copy is under way any more.
func (t *table) revokeAll() {
	t.mu.Lock()
	slots := t.slots
	t.slots, t.free, t.live, t.pinned = nil, nil, 0, 0
	t.mu.Unlock()
	for _, reg := range slots {
		if reg != nil {
			reg.revoke()
		}
	}
}

func (r *region) revoke() {
	r.mu.Lock()
	r.dead = true
	r.mu.Unlock()
}

func (t *table) atLocked(key uint64) *region {
	if i := key & (1<<keyIndexBits - 1); i < uint64(len(t.slots)) {
		return t.slots[i]
	}
	return nil
}

// local reports whether lkey covers r with the rights need. The caller of Post has promised to keep the
// registration while the operation is in flight, so nothing is held.
func (t *table) local(r mem.Range, lkey uint64, need transport.Access) bool {
	t.mu.RLock()
	reg := t.atLocked(lkey)
	t.mu.RUnlock()
	return reg != nil && reg.pub.LKey == lkey && reg.access&need == need && reg.mem.Contains(r)
}

// hold is local for memory whose owner is another rank: it returns the region, held in read mode, or nil.
func (t *table) hold(r mem.Range, lkey uint64, need transport.Access) *region {
	t.mu.RLock()
	defer t.mu.RUnlock()
	reg := t.atLocked(lkey)
	if reg == nil || reg.pub.LKey != lkey || reg.access&need != need || !reg.mem.Contains(r) {
		return nil
	}
	return reg.enter()
}

// enter takes the region in read mode, and returns nil where it is revoked.
func (r *region) enter() *region {
	r.mu.RLock()
	if r.dead {
		r.mu.RUnlock()
		return nil
	}
	return r
}

// remote returns n bytes at address addr and the region they lie in, held in read mode; the caller unlocks it.
// It returns nil where key, bounds or rights do not allow the access.
func (t *table) remote(addr, rkey uint64, n int, need transport.Access) (mem.Range, *region) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	reg := t.atLocked(rkey)
	if reg == nil || reg.pub.RKey != rkey || reg.access&need != need {
		return mem.Range{}, nil
	}
	off, size := addr-reg.mem.Addr(), uint64(reg.mem.Bytes)
	if off > size || uint64(n) > size-off {
		return mem.Range{}, nil
	}
	if reg = reg.enter(); reg == nil {
		return mem.Range{}, nil
	}
	return reg.mem.Slice(int(off), n), reg
}
