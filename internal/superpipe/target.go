package superpipe

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/bounce"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// Target is the side of a rank into whose unregistered memory others put: a workspace that is leased to one transfer at
// a time, and the copying behind the NIC. NewTarget makes it. All methods may be called concurrently; none blocks for
// longer than the copy of one chunk.
type Target struct {
	c       Config
	way     Way
	inline  bool
	key     transport.Region // of the workspace
	scratch mem.Range        // the acknowledgement of each lease
	ackFrom transport.Region

	live, served, broken atomic.Int64

	leases []lease

	mu         sync.Mutex // guards what follows; taken inside lease.mu
	pool       *bounce.Pool
	generation uint64
	held       map[int]int // leases by origin
	closed     bool
}

// NewTarget registers the workspace of a target. Its error names the limit and the setting where that is refused; where
// the NIC has no way for copied chunks it wraps transport.ErrUnsupported.
func NewTarget(c Config) (*Target, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	caps := c.NIC.Caps()
	t := &Target{c: c, way: wayOf(caps), inline: caps.MaxInline >= 8, leases: make([]lease, c.Leases), held: map[int]int{}}
	if t.way == WayNone {
		return nil, errNoWay
	}
	slots, key, err := c.workspace("from other ranks", c.Leases*c.Fold, transport.LocalWrite|transport.RemoteWrite)
	if err != nil {
		return nil, err
	}
	t.pool, t.key = bounce.New(slots, c.Fold*c.SlotBytes), key
	t.scratch = mem.Of(make([]uint64, c.Leases))
	if t.ackFrom, err = c.NIC.Register(t.scratch, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("register %d bytes of acknowledgements: %w", t.scratch.Bytes, err), c.NIC.Deregister(key))
	}
	return t, nil
}

// Footprint is the registered memory of a target, in bytes.
func (t *Target) Footprint() int { return t.c.Leases*t.c.Fold*t.c.SlotBytes + t.scratch.Bytes }

// Active is how many leases are out. While there are any, somebody has to call Progress: the NIC reports nothing of
// data that arrives in sub-blocks.
func (t *Target) Active() int { return int(t.live.Load()) }

// FreeLeases is how many transfers the workspace has room for now.
func (t *Target) FreeLeases() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pool.Free()
}

// Broken is how many leases ended because an origin sent what no plan of it can hold.
func (t *Target) Broken() int64 { return t.broken.Load() }

// Served is how many transfers have been copied to their place.
func (t *Target) Served() int64 { return t.served.Load() }

// Immediates is how many writes with immediate may be on the way to this target at once: so many receive buffers beside
// those of messages must be posted.
func (t *Target) Immediates() int {
	if t.way != WayImm {
		return 0
	}
	return t.c.Leases * t.c.Fold
}

// Lease grants workspace for a transfer from rank origin, connected as ep, into dst; ok is false while there is none,
// or the origin has its share, or the offer does not fit: the origin tries again, or another protocol. It does not wait,
// so the handler of a rendezvous message may call it. dst belongs to the target until the transfer is served or lost.
func (t *Target) Lease(origin int, ep transport.EP, o Offer, dst mem.Range) (g Grant, ok bool) {
	if o.Bytes != uint64(dst.Bytes) || o.Bytes == 0 || o.Bytes > maxCopied || o.Tag == 0 || o.Tag > lastGeneration {
		return Grant{}, false
	}
	slot, generation, ok := t.take(origin)
	if !ok {
		return Grant{}, false
	}
	l := &t.leases[slot]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open(t, slot, generation, origin, ep, o, dst)
	return Grant{
		Generation: generation, Addr: l.slots.Addr(), Key: t.key.RKey, Lease: uint32(slot),
		SlotBytes: uint32(t.c.SlotBytes), Fold: uint16(t.c.Fold), Way: t.way,
	}, true
}

func (t *Target) take(origin int) (slot int32, generation uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.held[origin] >= t.c.PerOrigin {
		return 0, 0, false
	}
	if slot, ok = t.pool.Take(); !ok {
		return 0, 0, false
	}
	t.held[origin]++
	t.generation = t.generation%lastGeneration + 1
	t.live.Add(1)
	return slot, t.generation, true
}

// give takes a lease back.
func (t *Target) give(slot int32, origin int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[origin]--; t.held[origin] == 0 {
		delete(t.held, origin)
	}
	t.pool.Give(slot)
}

// Arrived takes the completion of a receive that a write with immediate has used up; it reports false for one of
// others. The caller posts the buffer again. It is called by the poller and copies nothing.
func (t *Target) Arrived(c *transport.Completion) bool {
	i, ours := immLease(c.Imm)
	if c.Kind != transport.OpRecv || !ours {
		return false
	}
	if i < len(t.leases) && c.Status == transport.StatusOK {
		t.leases[i].arrive(c.Imm, c.Bytes)
	}
	return true
}

// Completed takes a completion of one of the target's acknowledgements; it reports false for others'.
func (t *Target) Completed(c *transport.Completion) bool {
	if !t.c.owns(c) {
		return false
	}
	at := c.Cookie - t.c.Cookies
	if i, generation := int(at%mostLeases), at/mostLeases; i < len(t.leases) {
		t.leases[i].acknowledged.Store(generation)
	}
	return true
}

// Progress copies what has arrived to its place, at most one chunk of each lease, and acknowledges it. It reports
// whether there was anything. It is called by whoever polls.
func (t *Target) Progress() (moved bool) {
	if t.live.Load() == 0 {
		return false
	}
	for i := range t.leases {
		l := &t.leases[i]
		some, copied, whole := l.copyOut()
		if copied > 0 && t.c.Copied != nil {
			t.c.Copied(copied, whole)
		}
		moved = l.acknowledge() || some || moved
	}
	return moved
}

// Lost takes back what is leased to a rank that is gone, and leaves what has not been copied. The caller has ended the
// connection before: no write of that rank lands any more. When Lost returns, nothing of its transfers is copied either.
func (t *Target) Lost(origin int) {
	for i := range t.leases {
		t.leases[i].lost(origin, 0)
	}
}

// Return takes back a lease whose origin has posted nothing into it and will not.
func (t *Target) Return(origin int, generation uint64) {
	for i := range t.leases {
		t.leases[i].lost(origin, generation)
	}
}

// Close takes all leases back, the NIC being closed, and grants none any more.
func (t *Target) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	for i := range t.leases {
		t.leases[i].lost(anyOrigin, 0)
	}
}
