package superpipe

import (
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/spread"
	"gopgas/transport"
)

// Pipe is one transfer under way. Begin makes it. Whoever wants it to move calls Step; several goroutines may, and one
// of them moves it.
type Pipe struct {
	o     *Origin
	t     Transfer
	index int32
	left  int32 // the index, when it is done and nobody may have that yet; -1: somebody may
	tag   uint64

	how  carriage
	fold int // chunks in slots at once

	missed   atomic.Bool // somebody has come to step
	stepping sync.Mutex  // try-lock only: guards what follows
	plan     Plan
	from     int // the plan is for the chunks from this one on, and the bytes behind base
	base     int
	total    int // chunks
	chunks   [mostFold]chunk
	copied   int // chunks copied into slots, or ready otherwise
	posted   int
	settled  int          // chunks that are acknowledged; of a get: copied out
	seq      int          // blocks sealed
	gathered spread.Place // of the transfer's Spread: behind what is copied
	waits    bool         // its target has keys that are not known yet
	early    int          // slots taken while it did
	moved    int          // bytes copied by the step under way
	whole    int          // bytes copied by all
	op       [1]transport.Op

	sourced atomic.Bool
	done    atomic.Bool

	mu       sync.Mutex // guards what follows; innermost
	late     pinned
	reached  bool // the target is known
	grant    Grant
	err      error
	deserted bool // no completion will come
	lost     bool // the connection has ended
}

// chunk is one of the last fold chunks.
type chunk struct {
	state  atomic.Int32
	status atomic.Uint32 // a transport.Status, before state becomes chunkLanded
	left   atomic.Int32  // of one that takes several operations: those that are not reported, and one while not all are posted
	sent   int           // what of such a one is posted: blocks, or bytes of one that has several keys
	slot   int32         // or -1
	bytes  int           // payload
	offset int
	region transport.Region
	pinned bool // region is to be deregistered
}

// States of a chunk.
const (
	chunkFree   int32 = iota
	chunkReady        // copied, not posted
	chunkPosted       // the NIC's
	chunkLanded       // reported
)

// carriage is how the chunks of a pipe travel.
type carriage uint8

const (
	byCopy   carriage = iota // through slots
	bySeal                   // through slots in sub-blocks
	byGather                 // from registered memory, with flags from slots between
	byDirect                 // from registered memory
	byPin                    // from memory that is registered for it
)

// begin makes p the pipe of a transfer. Others may still hold it as the pipe of an older one, which is done: they find
// that out by done, under a lock, or get past it when all here is set.
func (p *Pipe) begin(t Transfer, index int32, tag uint64) {
	p.stepping.Lock()
	defer p.stepping.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t, p.index, p.left, p.tag = t, index, -1, tag
	p.how, p.from, p.base, p.copied, p.posted, p.settled, p.seq = byCopy, 0, 0, 0, 0, 0, 0
	p.gathered, p.whole, p.early = spread.Place{}, 0, 0
	p.late, p.grant, p.err, p.deserted, p.lost = pinned{}, Grant{}, nil, false, false
	p.choose()
	p.sourced.Store(false)
	p.done.Store(false)
}

// forget lets go of the memory of a transfer that is over, which is its caller's: the pipe may not be used again for long.
func (p *Pipe) forget() {
	p.stepping.Lock()
	defer p.stepping.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.Local, p.t.Keys, p.t.Spread = mem.Range{}, nil, nil
	p.op[0].SGE = [len(p.op[0].SGE)]transport.SGE{}
}

// choose decides how the transfer travels and cuts it. A plan for a lease is made before the grant, from this rank's
// settings, which are the target's too.
func (p *Pipe) choose() {
	o, t, c := p.o, &p.t, &p.o.c
	p.fold, p.reached = c.Fold, t.known()
	r := Rules{Slot: min(c.SlotBytes, o.caps.MaxMessage)}
	switch {
	case t.Lease && o.way == WayFlags:
		p.how, r.Unit = bySeal, Payload
		r.Slot = min(c.SlotBytes, o.caps.MaxMessage) / Block * Payload
		if t.Registered && o.caps.MaxSGE >= 2 {
			p.how = byGather
		}
	case t.Registered && t.Lease:
		p.how = byDirect
	case t.Registered:
		p.how, r.Slot = byDirect, o.caps.MaxMessage
	case !t.Lease && (c.Policy == OnTheFly || c.Policy == PipelinedPins):
		p.how = byPin
	}
	p.cut(r)
	p.total = p.plan.Chunks
	if t.bytes() == 0 {
		p.total = 0
	}
}

// cut plans the chunks by the policy, with Origin.mu held.
func (p *Pipe) cut(r Rules) {
	t, c, m := &p.t, &p.o.c, p.o.model.Load()
	n := t.bytes()
	switch {
	case p.how == byDirect && !t.Lease:
		p.plan = PlanWith(n, float64(r.Slot), 1, r)
	case p.how == byPin && c.Policy == OnTheFly:
		p.plan = PlanWith(n, float64(p.o.caps.MaxMessage), 1, Rules{Slot: p.o.caps.MaxMessage})
	case p.how == byPin, c.Policy == Naive:
		p.plan = PlanWith(n, float64(r.Slot), 1, r)
		if c.Policy == Naive {
			p.fold = 1
		}
	case m == nil && c.Policy == Flat:
		p.plan = PlanWith(n, defaultFirst, 1, r)
	case m == nil && t.Keys != nil && t.Behind > 0 && !t.Get:
		p.plan = PlanWith(n, float64(r.Slot), 1, r) // as much as may be is copied behind the move, which takes longer than a message
	case m == nil:
		p.plan = PlanWith(n, defaultFirst, defaultRatio, r)
		p.plan.shrink = t.Get
	case c.Policy == Flat:
		p.plan = PlanFlat(m, n, r)
	case t.Get:
		p.plan = p.o.plans.of(m, n, true, r)
	case t.Behind > 0:
		p.plan = PlanBehind(m, n, t.Behind, r)
	case t.Lease:
		p.plan = PlanBehind(m, n, 2*m.Latency, r)
	default:
		p.plan = p.o.plans.of(m, n, false, r)
	}
}

// Chunks is in how many pieces the transfer was cut at first.
func (p *Pipe) Chunks() int { return p.total }

// next makes c chunk i. Where memory has been registered from some byte on, chunks up to that byte are copied and the
// others are not.
func (p *Pipe) next(c *chunk, i int) {
	if i-p.from == p.plan.Chunks { // the head is done
		p.recut(i, p.base+p.plan.Bytes, p.t.bytes(), 0, byDirect)
	}
	p.place(c, i)
	tail, ok := p.tail()
	switch {
	case !ok || c.offset+c.bytes <= tail.at:
		return
	case c.offset < tail.at:
		p.recut(i, c.offset, tail.at, float64(c.bytes), byCopy)
	default:
		p.recut(i, c.offset, p.t.bytes(), 0, byDirect)
	}
	p.t.LKey = tail.key
	p.place(c, i)
}

func (p *Pipe) place(c *chunk, i int) {
	off, n := p.plan.Piece(i - p.from)
	c.slot, c.offset, c.bytes = -1, p.base+off, n
}

// pinned is memory of the transfer that has been registered since it began: from byte at on.
type pinned struct {
	at  int
	key uint64
	set bool
}

// Pinned tells a pipe that copies that its local memory from byte at on is now registered: what of it has not been
// copied travels directly. The registration stays until the transfer is done. It is how a head travels by copies while
// a helper registers the tail. A transfer with a lease goes on copying.
func (p *Pipe) Pinned(at int, lkey uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = pinned{at, lkey, !p.t.Lease}
}

// tail is what has been registered, while chunks are still copied.
func (p *Pipe) tail() (pinned, bool) {
	if p.how != byCopy {
		return pinned{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late, p.late.set
}

// recut plans the bytes from one to another anew: copied in chunks that grow from first, or directly. They begin with
// chunk i.
func (p *Pipe) recut(i, from, to int, first float64, how carriage) {
	p.from, p.base, p.how = i, from, how
	r, q := Rules{Slot: p.o.caps.MaxMessage}, defaultRatio
	if how == byCopy {
		r.Slot = min(r.Slot, p.o.c.SlotBytes)
	} else {
		first, q = float64(r.Slot), 1
	}
	p.plan = PlanWith(to-from, first, q, r)
	p.plan.shrink = p.t.Get
	p.total = i + p.plan.Chunks
	if to < p.t.bytes() {
		p.total++ // at least: the tail is planned when it is reached
	}
}

// Offer is what the rendezvous message of a transfer with a lease carries.
func (p *Pipe) Offer() Offer {
	word := p.o.words.Slice(int(p.index)*8, 8)
	return Offer{Bytes: uint64(p.t.bytes()), AckAddr: word.Addr(), AckKey: p.o.ackTo.RKey, Tag: p.tag}
}

// Granted gives the pipe the workspace that the target has leased to it. With an error the pipe ends with it, and the
// target is to be told that it may have the lease back.
func (p *Pipe) Granted(g Grant) error {
	c := &p.o.c
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && (!p.t.Lease || p.reached || int(g.SlotBytes) != c.SlotBytes || int(g.Fold) != c.Fold || g.Way != p.o.way) {
		p.err = ErrGrant
	}
	p.grant, p.reached = g, p.err == nil
	return p.err
}

// Reach tells the pipe where the target's memory is, now that it is registered.
func (p *Pipe) Reach(raddr, rkey uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grant, p.reached = Grant{Addr: raddr, Key: rkey}, true
}

// Fail ends the transfer with err. It is done when the NIC has reported what was in flight. Of several errors the first
// stays, but that a connection broke gives way to why.
func (p *Pipe) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil || p.err == errBroken {
		p.err = err
	}
}

// fail is Fail if the transfer is with that rank; lost: the connection has ended for good.
func (p *Pipe) fail(rank int, err error, lost bool) {
	p.mu.Lock()
	ours := p.t.Rank == rank && !p.done.Load()
	p.lost = p.lost || ours && lost
	p.mu.Unlock()
	if ours {
		p.Fail(err)
	}
}

func (p *Pipe) isLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// abandon is Fail where nothing will be reported.
func (p *Pipe) abandon(err error) {
	p.Fail(err)
	p.mu.Lock()
	p.deserted = true
	p.mu.Unlock()
	p.Step()
}

// Sourced reports whether the source of a put may be reused.
func (p *Pipe) Sourced() bool { return p.sourced.Load() || p.done.Load() }

// Done reports whether the transfer has ended. A put with a lease has been copied to its place by then; another is
// where its completions say: a NIC whose completions mean "sent" is flushed by the caller.
func (p *Pipe) Done() bool { return p.done.Load() }

// Bytes is the length of the transfer.
func (p *Pipe) Bytes() int { return p.t.bytes() }

// Copied is how many bytes of a transfer that is done this rank has copied: the others were the NIC's where they lay.
func (p *Pipe) Copied() int { return p.whole }

// Err is nil until the transfer has ended in an error.
func (p *Pipe) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// complete notes what the NIC reported for the chunk in a place. err says why it has failed, if that is known better than
// by the status.
func (p *Pipe) complete(place int, s transport.Status, err error) {
	c := &p.chunks[place]
	if s != transport.StatusOK {
		if err == nil {
			err = statusError(s)
		}
		p.Fail(err)
	}
	if s != transport.StatusOK || c.left.Load() == 0 {
		c.status.Store(uint32(s))
	}
	if c.left.Load() == 0 || c.left.Add(-1) == 0 {
		c.state.Store(chunkLanded)
	}
}

// ok reports whether the NIC has done a chunk that has landed.
func (c *chunk) ok() bool { return transport.Status(c.status.Load()) == transport.StatusOK }

// target returns where chunks go, as far as that is known, and the error that has ended the pipe.
func (p *Pipe) target() (g Grant, reached, deserted bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.t.known() {
		return Grant{Addr: p.t.RAddr, Key: p.t.RKey}, true, p.deserted, p.err
	}
	return p.grant, p.reached, p.deserted, p.err
}

// Step moves the transfer along, by one chunk's copy unless others ask for more meanwhile, and reports whether it moved.
// It never waits. Where another goroutine is at it, that one sees what this one has seen before it lets go: so whoever
// has handed a completion in and called Step may go to sleep.
func (p *Pipe) Step() (moved bool) {
	p.missed.Store(true) // before the attempt, so that whoever makes it fail finds it
	for p.missed.Load() && !p.done.Load() && p.stepping.TryLock() {
		p.missed.Store(false)
		some, copied := p.step()
		whole := p.t.bytes()
		p.stepping.Unlock()
		moved = moved || some
		if copied > 0 && p.o.c.Copied != nil {
			p.o.c.Copied(copied, whole)
		}
	}
	return moved
}

// step is Step with the lock held. It also returns how many bytes it has copied.
func (p *Pipe) step() (moved bool, copied int) {
	if p.done.Load() {
		return false, 0
	}
	p.moved = 0
	g, reached, deserted, err := p.target()
	p.waits = p.t.Keys != nil && !reached
	if !p.waits && p.early > 0 {
		p.o.settleEarly(p.early)
		p.early = 0
	}
	moved = p.retire(deserted)
	switch {
	case err != nil:
		p.drop()
	case p.t.Get:
		moved = p.pull(g, reached) || moved
	default:
		moved = p.push(g, reached) || moved
	}
	if err == nil {
		if err = p.Err(); err != nil {
			p.drop()
		}
	}
	if err != nil && deserted {
		p.retire(true)
	}
	p.whole += p.moved
	if p.ended(err) {
		if p.early > 0 {
			p.o.settleEarly(p.early)
		}
		p.o.release(p, err != nil)
		p.done.Store(true) // from here on Reuse may come: nothing is locked any more
		return true, p.moved
	}
	return moved, p.moved
}

// ended reports whether nothing is left to do or to wait for.
func (p *Pipe) ended(err error) bool {
	for i := range p.chunks[:p.fold] {
		if s := p.chunks[i].state.Load(); s == chunkPosted || s == chunkLanded || s == chunkReady && err == nil {
			return false
		}
	}
	return err != nil || p.settled == p.total
}

// drop frees the chunks that will not be posted any more.
func (p *Pipe) drop() {
	for i := range p.chunks[:p.fold] {
		switch c := &p.chunks[i]; {
		case c.state.Load() != chunkReady:
		case c.sent == 0:
			p.freeChunk(c)
		case c.allPosted(): // B2: the NIC has some of it
			p.freeChunk(c)
		}
	}
}

// freeChunk gives back what a chunk holds.
func (p *Pipe) freeChunk(c *chunk) {
	if c.pinned {
		if err := p.o.c.NIC.Deregister(c.region); err != nil {
			p.Fail(err)
		}
	}
	if c.slot >= 0 {
		p.o.giveSlot(c.slot)
	}
	c.slot, c.pinned, c.sent = -1, false, 0
	c.left.Store(0)
	c.state.Store(chunkFree)
}

// part is the caller's memory of a chunk.
func (p *Pipe) part(c *chunk) mem.Range { return p.t.Local.Slice(c.offset, c.bytes) }
