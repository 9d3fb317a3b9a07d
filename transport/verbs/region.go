package verbs

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/transport/verbs/internal/ibv"
)

// regions are a domain's registrations, by ID. They keep Go memory alive.
type regions struct {
	mu    sync.Mutex
	all   map[uint64]region
	next  uint64
	bytes int64 // of all
}

// region is one registration.
type region struct {
	handle uint64
	lkey   uint32
	memory mem.Range
}

var (
	errEmptyRange = errors.New("register: a range of no bytes")
	errNoRegion   = errors.New("deregister: this domain has no such registration")
)

// rights translates. The device wants the local right to write with the remote one.
func rights(a transport.Access) int {
	r := 0
	if a&(transport.LocalWrite|transport.RemoteWrite|transport.RemoteAtomic) != 0 {
		r |= ibv.LocalWrite
	}
	if a&transport.RemoteRead != 0 {
		r |= ibv.RemoteRead
	}
	if a&transport.RemoteWrite != 0 {
		r |= ibv.RemoteWrite
	}
	if a&transport.RemoteAtomic != 0 {
		r |= ibv.RemoteAtomic
	}
	return r
}

// Register pins r's pages and gives the NIC their addresses: tens of microseconds and about half of one per page.
// The right RemoteWrite or RemoteAtomic brings LocalWrite with it.
func (d *domain) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed.Load() {
		return transport.Region{}, transport.ErrClosed
	}
	if r.Bytes <= 0 || r.Base == nil {
		return transport.Region{}, errEmptyRange
	}
	if err := d.reserve(int64(r.Bytes)); err != nil {
		return transport.Region{}, err
	}
	g, err := ibv.Register(&d.nic, r.Addr(), uint64(r.Bytes), rights(a))
	d.regions.mu.Lock()
	defer d.regions.mu.Unlock()
	if err != nil {
		d.regions.bytes -= int64(r.Bytes)
		return transport.Region{}, registerError(err, account{
			bytes: int64(r.Bytes), limit: d.memlock, pinned: pinned(),
			regions: len(d.regions.all), most: int(d.port.limits.MaxRegions), device: d.port.name(),
		})
	}
	d.regions.next++
	d.regions.all[d.regions.next] = region{g.Handle, g.LKey, r}
	return transport.Region{ID: d.regions.next, LKey: uint64(g.LKey), RKey: uint64(g.RKey)}, nil
}

// reserve takes bytes from the domain's budget.
func (d *domain) reserve(bytes int64) error {
	d.regions.mu.Lock()
	defer d.regions.mu.Unlock()
	if d.budget > 0 && d.regions.bytes+bytes > d.budget {
		return &transport.LimitError{
			What:    fmt.Sprintf("registering %s with %s", mem.Text(bytes), d.port.name()),
			Found:   fmt.Sprintf("%s of %s registered by this rank already", mem.Text(d.regions.bytes), mem.Text(d.budget)),
			Needed:  mem.Text(bytes),
			Setting: "PGAS_MAX_PINNED=" + strconv.FormatInt(d.regions.bytes+bytes, 10) + ", or unset it: then RLIMIT_MEMLOCK alone counts",
		}
	}
	d.regions.bytes += bytes
	return nil
}

// LetGo has the domain no longer keep the memory of a registration alive: its owner does. It is for the program that shows
// what becomes of memory which nobody keeps.
func (d *domain) LetGo(id uint64) {
	d.regions.mu.Lock()
	defer d.regions.mu.Unlock()
	if g, ok := d.regions.all[id]; ok {
		g.memory.Base = nil
		d.regions.all[id] = g
	}
}

// Deregister unpins a registration's pages.
func (d *domain) Deregister(g transport.Region) error {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed.Load() {
		return transport.ErrClosed
	}
	d.regions.mu.Lock()
	r, known := d.regions.all[g.ID]
	delete(d.regions.all, g.ID)
	d.regions.bytes -= int64(r.memory.Bytes)
	d.regions.mu.Unlock()
	if !known {
		return errNoRegion
	}
	if err := ibv.Deregister(r.handle); err != nil {
		return fmt.Errorf("deregister: %w", err)
	}
	return nil
}

// hasKeys reports whether all keys of an operation's pieces are of registrations that there are. It is for the way of an
// error: it looks at all of them.
func (d *domain) hasKeys(keys []uint32) bool {
	d.regions.mu.Lock()
	defer d.regions.mu.Unlock()
	for _, k := range keys {
		found := false
		for _, r := range d.regions.all {
			found = found || r.lkey == k
		}
		if !found {
			return false
		}
	}
	return true
}

// key32 cuts a key to the width that the device has; one that does not fit is one that nobody has.
func key32(key uint64) uint32 {
	if key>>32 != 0 {
		return 0
	}
	return uint32(key)
}
