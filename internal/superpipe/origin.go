package superpipe

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/bounce"
	"gopgas/internal/mem"
	"gopgas/internal/spread"
	"gopgas/transport"
)

// Origin is the side of a rank that puts and gets. NewOrigin makes it. All methods may be called concurrently; none
// blocks for longer than the copy of one chunk.
type Origin struct {
	c     Config
	caps  transport.Caps
	way   Way
	key   transport.Region // of the slots
	words mem.Range        // acknowledgements, a word per pipe
	ackTo transport.Region // of the words

	fallbacks atomic.Int64
	model     atomic.Pointer[Model] // nil: the paper's defaults

	mu      sync.Mutex // guards what follows
	pool    *bounce.Pool
	early   int // slots of pipes that do not know their keys yet: see takeSlot
	free    []int32
	tag     uint64
	closed  error
	retired []retired
	spare   []*Pipe // that can be used again
	plans   plans

	live  atomic.Int32                    // pipes that are not done
	table [mostPipes]atomic.Pointer[Pipe] // pipes, for completions
}

// NewOrigin registers the slots of an origin. Its error names the limit and the setting where that is refused.
func NewOrigin(c Config) (*Origin, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	o := &Origin{c: c, caps: c.NIC.Caps(), way: wayOf(c.NIC.Caps())}
	o.model.Store(c.Model)
	slots, key, err := c.workspace("to other ranks", c.Slots, transport.LocalWrite)
	if err != nil {
		return nil, err
	}
	o.pool, o.key = bounce.New(slots, c.SlotBytes), key
	o.words = mem.Of(make([]uint64, mostPipes))
	if o.ackTo, err = c.NIC.Register(o.words, transport.LocalWrite|transport.RemoteWrite); err != nil {
		return nil, errors.Join(fmt.Errorf("register %d bytes of acknowledgements: %w", o.words.Bytes, err), c.NIC.Deregister(key))
	}
	for i := mostPipes - 1; i >= 0; i-- {
		o.free = append(o.free, int32(i))
	}
	return o, nil
}

// Footprint is the registered memory of an origin, in bytes.
func (o *Origin) Footprint() int { return o.c.Slots*o.c.SlotBytes + o.words.Bytes }

// Way is how transfers to unregistered targets travel over this NIC.
func (o *Origin) Way() Way { return o.way }

// Transfer is one large put or get.
type Transfer struct {
	Get   bool
	Rank  int // the target, for errors
	EP    transport.EP
	Local mem.Range // source of a put, destination of a get

	Registered bool // Local is covered by LKey
	LKey       uint64

	// RAddr and RKey name the target's memory where that is registered and known.
	RAddr, RKey uint64
	// Behind is how long, in seconds, the target stays unknown: a firehose that moves, a rendezvous. The first chunk is
	// copied meanwhile; Reach or Granted ends it. 0: the target is known.
	Behind float64
	// Keys are those of the target's memory if that has more than one. They are asked for nothing before Reach has told the address;
	// Behind may be 0, if that is to be soon. nil: RKey, or what Reach says, is the only one.
	Keys keys
	// Lease: the target is not registered and will grant workspace. A put only.
	Lease bool
	// Spread says which pieces of Local are sent; nil: all of it. Only with a lease, and not where Local is registered.
	Spread *spread.Spread
}

// known reports whether the target's memory is known when the transfer begins.
func (t *Transfer) known() bool { return t.Behind == 0 && !t.Lease && t.Keys == nil }

// bytes is the length of the transfer.
func (t *Transfer) bytes() int { return lengthOf(t.Local, t.Spread) }

// lengthOf is how long a transfer from or to some pieces of r is; nil: all of it.
func lengthOf(r mem.Range, pieces *spread.Spread) int {
	if pieces != nil {
		return pieces.Bytes()
	}
	return r.Bytes
}

// Errors of a transfer; match with errors.Is.
var (
	// ErrTooLong: a transfer longer than sequence numbers reach; send it in parts.
	ErrTooLong = errors.New("superpipe: the transfer is too long for one lease")
	// ErrGrant: the target's grant does not fit this rank's settings, which must be equal on all ranks.
	ErrGrant = errors.New("superpipe: the grant does not fit this rank's settings")
)

var (
	errNoWay    = fmt.Errorf("copy into the target's workspace: this NIC neither keeps data in order nor has writes with immediate: %w", transport.ErrUnsupported)
	errSpread   = errors.New("superpipe: pieces travel through a lease only, and are copied")
	errGetLease = fmt.Errorf("get from unregistered memory: no one-sided operation reaches it: %w", transport.ErrUnsupported)
)

// approach is how much of what will be copied soon is fetched ahead; what lies behind it the processor foresees once it sees the copy.
const approach = 1 << 10

// Approach has the first bytes of a put's source, whose Begin follows, come into the cache, and waits for nothing. Of what nobody has touched for long the
// first line takes as long as all others of some kilobytes.
func (o *Origin) Approach(r mem.Range) {
	const line = 64
	for at := 0; at < min(r.Bytes, approach); at += line {
		mem.Prefetch(r.Slice(at, 1).Base)
	}
}

// Begin starts a transfer; ok is false while all pipes are in use, until Progress has ended one. The memory of t.Local
// is read (written, for a get) until Sourced (Done). Nothing is posted before the first Step.
func (o *Origin) Begin(t Transfer) (p *Pipe, ok bool, err error) {
	if t.Spread != nil && (!t.Lease || t.Registered) {
		return nil, false, errSpread
	}
	if t.Lease {
		switch {
		case t.Get:
			return nil, false, errGetLease
		case o.way == WayNone:
			return nil, false, errNoWay
		case t.bytes() > maxCopied:
			return nil, false, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, t.bytes(), maxCopied)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed != nil {
		return nil, false, o.closed
	}
	if len(o.free) == 0 {
		return nil, false, nil
	}
	if k := len(o.spare); k > 0 {
		p, o.spare = o.spare[k-1], o.spare[:k-1]
	} else {
		p = &Pipe{o: o}
	}
	index := o.free[len(o.free)-1]
	o.free = o.free[:len(o.free)-1]
	o.tag = o.tag%lastGeneration + 1
	p.begin(t, index, o.tag)
	o.words.Word64(int(p.index) * 8).Store(0)
	o.table[p.index].Store(p)
	o.live.Add(1)
	return p, true, nil
}

// Reuse gives a pipe that is done to a later transfer. Its holder asks it nothing any more.
func (o *Origin) Reuse(p *Pipe) {
	p.forget()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spare = append(o.spare, p)
}

// release takes a pipe that is done out of the table. A transfer with a lease that has failed leaves its word behind until
// the connection has ended: the target's end of it may work still, and a late acknowledgement would wipe out another's.
func (o *Origin) release(p *Pipe, failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.table[p.index].Store(nil)
	if p.t.Lease && (failed || o.c.Kept) && p.posted > 0 && !p.isLost() { // asked under mu: revive comes after fail
		o.retired = append(o.retired, retired{p.index, p.t.Rank})
		p.left = p.index
	} else {
		o.free = append(o.free, p.index)
	}
	o.live.Add(-1)
}

// retired is a pipe's place that a rank may still write to.
type retired struct {
	index int32
	rank  int
}

// Place is where the target of a transfer with a lease, which is done, may still write acknowledgements, for Forgive; -1: it writes none, and the place may be
// another transfer's. It is asked before the pipe is reused.
func (p *Pipe) Place() int32 { return p.left }

// Forgive makes the place of a transfer that has failed usable again: its target has taken the lease back, and what it had
// acknowledged before has arrived.
func (o *Origin) Forgive(place int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, r := range o.retired {
		if r.index == place {
			o.retired = append(o.retired[:i], o.retired[i+1:]...)
			o.free = append(o.free, place)
			return
		}
	}
}

// revive makes the places that a rank can no longer write to usable again.
func (o *Origin) revive(rank int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keep := o.retired[:0]
	for _, r := range o.retired {
		if r.rank == rank {
			o.free = append(o.free, r.index)
		} else {
			keep = append(keep, r)
		}
	}
	o.retired = keep
}

func (o *Origin) giveSlot(s int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pool.Give(s)
}

// slot returns the memory of a slot.
func (o *Origin) slot(s int32) mem.Range { return o.pool.Range(s) }

// FreeSlots is how many slots nobody uses now.
func (o *Origin) FreeSlots() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pool.Free()
}

// Live is how many transfers are not done.
func (o *Origin) Live() int { return int(o.live.Load()) }

// Fallbacks is how many chunks were copied because a registration was refused.
func (o *Origin) Fallbacks() int64 { return o.fallbacks.Load() }

// Completed takes a completion of one of the origin's operations; it reports false for others'. The poller calls it.
// It never waits.
func (o *Origin) Completed(c *transport.Completion) bool {
	if !o.c.owns(c) {
		return false
	}
	o.report(c.Cookie, c.Status, nil)
	return true
}

// Reported is Completed for a caller who has looked at the completion of an operation, perhaps has posted it again, and
// knows how it ended: err is nil, or says why it failed.
func (o *Origin) Reported(cookie uint64, err error) {
	status := transport.StatusOK
	if err != nil {
		status = transport.StatusFlushed
	}
	o.report(cookie, status, err)
}

func (o *Origin) report(cookie uint64, s transport.Status, err error) {
	at := cookie - o.c.Cookies
	if p := o.table[at/mostFold%mostPipes].Load(); p != nil {
		p.complete(int(at%mostFold), s, err)
	}
}

// Calibrate makes transfers that begin from now on follow m. nil: the paper's defaults.
func (o *Origin) Calibrate(m *Model) { o.model.Store(m) }

// Progress moves every transfer along and reports whether any moved. Whoever polls calls it, so that a transfer whose
// caller has stopped waiting comes to its end.
func (o *Origin) Progress() (moved bool) {
	if o.live.Load() == 0 {
		return false
	}
	for i := range o.table {
		if p := o.table[i].Load(); p != nil && p.Step() {
			moved = true
		}
	}
	return moved
}

// Lost ends all transfers to a rank with err. The caller has ended the connection before, because the rank is gone or
// because an operation on it failed: no acknowledgement of that connection lands any more, and what this rank had in
// flight is being reported. Slots come back as it is.
func (o *Origin) Lost(rank int, err error) {
	for i := range o.table {
		if p := o.table[i].Load(); p != nil {
			p.fail(rank, err, true)
		}
	}
	o.revive(rank)
}

// Abort ends all transfers to a rank that lives with err: it cannot be reached now. Where one of them has a lease, the rank is
// to be told that it may have that back; until it has, it may acknowledge what it copies.
func (o *Origin) Abort(rank int, err error) {
	for i := range o.table {
		if p := o.table[i].Load(); p != nil {
			p.fail(rank, err, false)
		}
	}
}

// Close ends all transfers with err at once, completions or not: the NIC is closed and touches no memory any more.
// Begin returns err from then on.
func (o *Origin) Close(err error) {
	o.mu.Lock()
	o.closed = err
	o.mu.Unlock()
	for i := range o.table {
		if p := o.table[i].Load(); p != nil {
			p.abandon(err)
		}
	}
}
