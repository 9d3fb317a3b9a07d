package superpipe

import (
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/spread"
	"gopgas/transport"
)

// Target is the side of a rank into whose unregistered memory others put: a workspace that is leased to one transfer at
// a time, and the copying behind the NIC. NewTarget makes it. All methods may be called concurrently; none blocks for
// longer than the copy of one chunk.
type Target struct {
	c       Config
	way     Way
	inline  bool
	ordered bool // of two acknowledgements under way the later one lands last

	live, served, broken atomic.Int64

	leases []lease

	mu         sync.Mutex // guards what follows; taken inside lease.mu
	space      space
	generation uint64
	held       map[int]int // leases by origin
	gone       map[int]bool
	closed     bool
}

// NewTarget returns a target, with its workspace registered unless Config.Later says that Prepare will do that. Its error
// names the limit and the setting where registering is refused; where the NIC has no way for copied chunks it wraps
// transport.ErrUnsupported.
func NewTarget(c Config) (*Target, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	caps := c.NIC.Caps()
	t := &Target{c: c, way: wayOf(caps), inline: caps.MaxInline >= 8, ordered: caps.OrderedWrites, leases: make([]lease, c.Leases), held: map[int]int{}, gone: map[int]bool{}}
	if t.way == WayNone {
		return nil, errNoWay
	}
	t.space.scratch = mem.Of(make([]uint64, c.Leases))
	if c.Later {
		return t, nil
	}
	return t, t.Prepare()
}

// Active is how many leases are out. While there are any, somebody has to call Progress: the NIC reports nothing of
// data that arrives in sub-blocks.
func (t *Target) Active() int { return int(t.live.Load()) }

// FreeLeases is how many transfers the workspace has room for now.
func (t *Target) FreeLeases() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.space.state != spaceReady {
		return 0
	}
	return t.space.pool.Free()
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
	return t.LeaseSpread(origin, ep, o, dst, nil)
}

// LeaseSpread is Lease for what goes to the pieces of a Spread in dst; nil: to all of dst.
func (t *Target) LeaseSpread(origin int, ep transport.EP, o Offer, dst mem.Range, pieces *spread.Spread) (g Grant, ok bool) {
	if !o.fits(lengthOf(dst, pieces)) {
		return Grant{}, false
	}
	return t.lease(origin, ep, o, dst, pieces)
}

// Expect is Lease for a transfer that this side asks for: origin is told of the grant, and its offer comes with the answer,
// for Offered. Until then nothing is acknowledged.
func (t *Target) Expect(origin int, ep transport.EP, dst mem.Range) (g Grant, ok bool) {
	return t.ExpectSpread(origin, ep, dst, nil)
}

// ExpectSpread is Expect for what goes to the pieces of a Spread in dst; nil: to all of dst.
func (t *Target) ExpectSpread(origin int, ep transport.EP, dst mem.Range, pieces *spread.Spread) (g Grant, ok bool) {
	if n := lengthOf(dst, pieces); n == 0 || n > maxCopied {
		return Grant{}, false
	}
	return t.lease(origin, ep, Offer{}, dst, pieces)
}

// Offered gives a lease that Expect has granted its origin's offer; it reports false where that does not fit it.
func (t *Target) Offered(g Grant, o Offer) bool {
	l := &t.leases[g.Lease]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t == nil || l.generation != g.Generation {
		return true // it is over, and nobody waits for acknowledgements
	}
	if !o.fits(l.whole) {
		return false
	}
	l.offer = o
	return true
}

func (t *Target) lease(origin int, ep transport.EP, o Offer, dst mem.Range, pieces *spread.Spread) (g Grant, ok bool) {
	slot, generation, ok := t.take(origin)
	if !ok {
		return Grant{}, false
	}
	l := &t.leases[slot]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open(t, slot, generation, origin, ep, o, dst, pieces)
	if t.leasesNone(origin) { // since take: Lost, or Close, may have passed this lease already
		l.close()
		return Grant{}, false
	}
	return Grant{
		Generation: generation, Addr: l.slots.Addr(), Key: t.space.key.RKey, Lease: uint32(slot),
		SlotBytes: uint32(t.c.SlotBytes), Fold: uint16(t.c.Fold), Way: t.way,
	}, true
}

func (t *Target) take(origin int) (slot int32, generation uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.gone[origin] || t.held[origin] >= t.c.PerOrigin || t.space.state != spaceReady {
		return 0, 0, false
	}
	if slot, ok = t.space.pool.Take(); !ok {
		return 0, 0, false
	}
	t.held[origin]++
	t.generation = t.generation%lastGeneration + 1
	t.live.Add(1)
	return slot, t.generation, true
}

// leasesNone reports whether an origin is granted no lease any more.
func (t *Target) leasesNone(origin int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed || t.gone[origin]
}

// give takes a lease back.
func (t *Target) give(slot int32, origin int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[origin]--; t.held[origin] == 0 {
		delete(t.held, origin)
	}
	t.space.pool.Give(slot)
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
	if c.Status == transport.StatusOK {
		t.Reported(c.Cookie, nil)
	}
	return true
}

// Reported is Completed for a caller who has looked at the completion of an acknowledgement, perhaps has posted it again,
// and knows how it ended. One that has failed is made again: it says how much has been copied in all, so none is lost and
// none counts twice.
func (t *Target) Reported(cookie uint64, err error) {
	at := cookie - t.c.Cookies
	i, generation := int(at%mostLeases), at/mostLeases
	if i >= len(t.leases) {
		return
	}
	l := &t.leases[i]
	if err != nil {
		l.unheard.Store(generation + 1)
	} else {
		l.acknowledged.Store(generation)
	}
	if t.c.Kept && l.current.Load()%cookieGenerations == generation {
		l.sending.Add(-1)
	}
}

// Busy reports whether there are leases for Progress to look at.
func (t *Target) Busy() bool { return t.live.Load() != 0 }

// Progress copies what has arrived to its place, at most one chunk of each lease, and acknowledges it. It reports
// whether there was anything. It is called by whoever polls.
func (t *Target) Progress() (moved bool) {
	if !t.Busy() {
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
// connection before: no write of that rank lands any more. When Lost returns, nothing of its transfers is copied either, and it is
// granted no lease again.
func (t *Target) Lost(origin int) {
	t.mu.Lock()
	t.gone[origin] = true
	t.mu.Unlock()
	for i := range t.leases {
		t.leases[i].lost(origin, 0)
	}
}

// Return takes back a lease into which its origin posts nothing any more, all that it had posted being reported. Where leases are
// kept it is false while the NIC has an acknowledgement for that origin: ask again. generation 0: the origin knows no more than the
// tag of its offer.
func (t *Target) Return(origin int, generation, tag uint64) bool {
	for i := range t.leases {
		if !t.leases[i].returned(origin, generation, tag) {
			return false
		}
	}
	return true
}

// Stop has nothing more copied out of a lease: where it was to go is its owner's again. The slots stay leased until the origin, which may go
// on putting into them, returns the lease or is lost.
func (t *Target) Stop(g Grant) {
	l := &t.leases[g.Lease]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t == nil || l.generation != g.Generation || l.broken {
		return
	}
	if !l.asleep {
		t.live.Add(-1)
	}
	l.broken = true
}

// Outcome tells of the newest lease of that number whether it is g's, and how far it is: copied where all of it is at its place,
// ended where it was lost or returned before that, or its origin has sent what fits no plan.
func (t *Target) Outcome(g Grant) (copied, ended bool) {
	l := &t.leases[g.Lease]
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.generation != g.Generation:
		return false, true
	case l.at == l.whole:
		return true, true
	default:
		return false, l.t == nil || l.broken
	}
}

// Into returns the origins of the transfers into memory of r for which a lease is out.
func (t *Target) Into(r mem.Range) (origins []int) {
	if t.live.Load() == 0 {
		return nil
	}
	for i := range t.leases {
		if origin, is := t.leases[i].into(r); is {
			origins = append(origins, origin)
		}
	}
	return origins
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
