package softnic

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// A key is a slot number and a random number.
const (
	slotBits = 16
	slotMask = 1<<slotBits - 1

	// MaxSlots is the largest table.
	MaxSlots = 1 << slotBits
)

// Errors of Add, Revoke and Remove.
var (
	errEmptyRange    = errors.New("register: a range of no bytes")
	errUnknownRegion = errors.New("deregister: no such region; it was deregistered before or belongs to another domain")
)

// revoked is added to a region's holds when it is revoked; far below what holds can make up for.
const revoked = math.MinInt64 / 2

// Hold is a region that may be touched until Release.
type Hold struct {
	holds  atomic.Int64 // how often it is held; plus revoked
	mem    mem.Range
	access transport.Access
	pub    transport.Region
}

// Release ends one hold.
func (h *Hold) Release() { h.holds.Add(-1) }

// Idle reports whether a revoked region is held by nobody any more.
func (h *Hold) Idle() bool { return h.holds.Load() == revoked }

// Mem returns the memory of the region.
func (h *Hold) Mem() mem.Range { return h.mem }

// enter takes a hold unless the region is revoked.
func (h *Hold) enter() bool {
	if h.holds.Add(1) > 0 {
		return true
	}
	h.holds.Add(-1)
	return false
}

// covers reports whether n bytes at addr lie in the region.
func (h *Hold) covers(addr uint64, n int) bool {
	off, size := addr-h.mem.Addr(), uint64(h.mem.Bytes)
	return n >= 0 && off <= size && uint64(n) <= size-off
}

// Table is the registrations of one domain. Make one with NewTable. All methods may be called concurrently.
type Table struct {
	pins  *Pins
	slots []atomic.Pointer[Hold]

	mu   sync.Mutex
	rng  *rand.ChaCha8
	free []int // slots given back, guarded by mu like all below
	next int   // first slot never used
	live int
}

// NewTable returns a table for at most limit registrations, which is at most MaxSlots; 0 means 8192.
func NewTable(p *Pins, limit int) (*Table, error) {
	if limit == 0 {
		limit = 8192
	}
	if limit < 0 || limit > MaxSlots {
		return nil, fmt.Errorf("a table of %d registrations: want between 1 and %d", limit, MaxSlots)
	}
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("random keys: %w", err)
	}
	return &Table{pins: p, slots: make([]atomic.Pointer[Hold], limit), rng: rand.NewChaCha8(seed)}, nil
}

// Cap returns how many registrations the table has room for.
func (t *Table) Cap() int { return len(t.slots) }

// Live returns how many registrations there are.
func (t *Table) Live() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// Slot returns the slot that a key names; whether there is a region in it is another matter.
func Slot(key uint64) int { return int(key & slotMask) }

// Add registers r: it locks its pages and draws its keys. Its error is a *transport.LimitError where a limit
// stands in the way.
func (t *Table) Add(r mem.Range, a transport.Access) (transport.Region, error) {
	if r.Bytes <= 0 || r.Base == nil {
		return transport.Region{}, errEmptyRange
	}
	slot, err := t.take()
	if err != nil {
		return transport.Region{}, err
	}
	if err := t.pins.Lock(r); err != nil {
		t.giveBack(slot)
		return transport.Region{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h := &Hold{mem: r, access: a, pub: transport.Region{ID: t.keyLocked(slot), LKey: t.keyLocked(slot), RKey: t.keyLocked(slot)}}
	t.slots[slot].Store(h)
	return h.pub, nil
}

// take reserves a slot.
func (t *Table) take() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == len(t.slots) {
		return 0, &transport.LimitError{
			What:   "a registration",
			Found:  fmt.Sprintf("%d of %d registrations in use", t.live, len(t.slots)),
			Needed: "1 more", Setting: "deregister some, or MaxRegions in the NIC's configuration",
		}
	}
	t.live++
	if n := len(t.free); n > 0 {
		slot := t.free[n-1]
		t.free = t.free[:n-1]
		return slot, nil
	}
	t.next++
	return t.next - 1, nil
}

func (t *Table) giveBack(slot int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, slot)
	t.live--
}

// keyLocked draws a key for a slot. Keys of zero are left out, so that zero is nobody's.
func (t *Table) keyLocked(slot int) uint64 {
	for {
		if r := t.rng.Uint64() << slotBits; r != 0 {
			return r | uint64(slot)
		}
	}
}

// at returns the region in the slot that key names, and nil where there is none.
func (t *Table) at(key uint64) *Hold {
	if i := key & slotMask; i < uint64(len(t.slots)) {
		return t.slots[i].Load()
	}
	return nil
}

// Local reports whether lkey covers r with the rights need. The caller has promised to keep the registration
// while it is used, so nothing is held.
func (t *Table) Local(r mem.Range, lkey uint64, need transport.Access) bool {
	h := t.at(lkey)
	return h != nil && h.pub.LKey == lkey && h.access&need == need && h.covers(r.Addr(), r.Bytes)
}

// HoldLocal is Local for memory whose owner has promised nothing: it returns the region, held, or nil.
func (t *Table) HoldLocal(r mem.Range, lkey uint64, need transport.Access) *Hold {
	h := t.at(lkey)
	if h == nil || h.pub.LKey != lkey || h.access&need != need || !h.covers(r.Addr(), r.Bytes) || !h.enter() {
		return nil
	}
	return h
}

// Hold returns the n bytes at address addr and the region they lie in, held, if rkey allows need there. It
// returns a nil region where key, bounds or rights do not.
func (t *Table) Hold(addr, rkey uint64, n int, need transport.Access) (mem.Range, *Hold) {
	h := t.at(rkey)
	if h == nil || h.pub.RKey != rkey || h.access&need != need || !h.covers(addr, n) || !h.enter() {
		return mem.Range{}, nil
	}
	return h.mem.Slice(int(addr-h.mem.Addr()), n), h
}

// Revoke makes the keys of a region void. The region that it returns is nobody's any more when Idle says so;
// then it must be given to Free.
func (t *Table) Revoke(reg transport.Region) (*Hold, error) {
	h := t.at(reg.ID)
	// Whoever takes the pointer out is the one that revokes.
	if h == nil || h.pub != reg || !t.slots[Slot(reg.ID)].CompareAndSwap(h, nil) {
		return nil, errUnknownRegion
	}
	h.holds.Add(revoked)
	return h, nil
}

// Free unlocks a revoked region's pages and frees its slot.
func (t *Table) Free(h *Hold) error {
	err := t.pins.Unlock(h.mem)
	t.giveBack(Slot(h.pub.ID))
	return err
}

// Remove deregisters a region. It waits until nobody holds it.
func (t *Table) Remove(s *sched.Sched, reg transport.Region) error {
	h, err := t.Revoke(reg)
	if err != nil {
		return err
	}
	sp := s.Begin(context.Background(), sched.What{Op: "deregister", Peer: -1}, nil)
	for !h.Idle() {
		_ = sp.Step() // with a context that does not end and no watch there is no error
	}
	sp.End()
	return t.Free(h)
}

// Regions returns all registrations, for who wants to end them.
func (t *Table) Regions() []transport.Region {
	var all []transport.Region
	for i := range t.slots {
		if h := t.slots[i].Load(); h != nil {
			all = append(all, h.pub)
		}
	}
	return all
}
