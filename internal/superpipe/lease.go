package superpipe

import (
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/spread"
	"gopgas/transport"
)

// lease is workspace in use by one transfer. The zero lease is free.
type lease struct {
	acknowledged atomic.Uint64 // generation of the newest last acknowledgement that the NIC has sent
	unheard      atomic.Uint64 // generation of an acknowledgement that it could not send, plus one
	sending      atomic.Int64  // acknowledgements that it has, where leases are kept
	current      atomic.Uint64 // generation, for who does not hold mu

	mu         sync.Mutex // guards what follows; held for the copy of one chunk
	t          *Target    // nil while the lease is free
	slot       int32
	generation uint64
	origin     int
	ep         transport.EP
	offer      Offer
	dst        mem.Range
	spread     *spread.Spread // nil: all of dst; else what of it
	next       spread.Place   // in spread
	slots      mem.Range

	chunk  int  // chunks copied out
	told   int  // of them, acknowledged
	block  int  // blocks copied of the chunk
	seq    int  // blocks copied of the transfer
	at     int  // bytes copied of the transfer
	whole  int  // of so many
	broken bool // the origin did what it must not, or wants no more: nothing is copied any more
	asleep bool // all is copied and acknowledged, and the lease is not counted as live
	op     [1]transport.Op

	inbox inbox
}

// inbox holds the lengths of the chunks whose immediates have come and that are not copied yet. It has a lock of its
// own, so that the poller does not wait for a copy.
type inbox struct {
	mu         sync.Mutex
	generation uint64 // 0: closed
	lease      int32
	next       int // chunks that have come
	bytes      [mostFold]uint32
}

const anyOrigin = -1

// cookieGenerations is how many generations the cookies of acknowledgements tell apart.
const cookieGenerations = CookieSpan / mostLeases

// open begins a lease; l.mu is held.
func (l *lease) open(t *Target, slot int32, generation uint64, origin int, ep transport.EP, o Offer, dst mem.Range, pieces *spread.Spread) {
	l.t, l.slot, l.generation, l.origin, l.ep, l.offer, l.dst = t, slot, generation, origin, ep, o, dst
	l.slots = t.space.pool.Range(slot)
	l.chunk, l.told, l.block, l.seq, l.at, l.whole, l.broken, l.asleep = 0, 0, 0, 0, 0, lengthOf(dst, pieces), false, false
	l.spread, l.next = pieces, spread.Place{}
	l.sending.Store(0)
	l.current.Store(generation)
	l.inbox.open(slot, generation)
}

func (b *inbox) open(slot int32, generation uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lease, b.generation, b.next = slot, generation, 0
}

// arrive notes that the chunk of an immediate is there. One of an older transfer is dropped.
func (l *lease) arrive(imm uint32, bytes uint32) {
	b := &l.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.generation == 0 {
		return
	}
	// The chunks of one transfer come in order, so its number is known; an older transfer's generation differs.
	if imm == immediate(uint32(b.lease), b.generation, b.next) {
		b.bytes[b.next%mostFold] = bytes
		b.next++
	}
}

// there returns the length of a chunk by its immediate.
func (b *inbox) there(chunk int) (bytes int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if chunk >= b.next {
		return 0, false
	}
	return int(b.bytes[chunk%mostFold]), true
}

// copyOut copies at most one chunk: so many bytes of a transfer of whole bytes.
func (l *lease) copyOut() (moved bool, copied, whole int) {
	if !l.mu.TryLock() {
		return false, 0, 0
	}
	defer l.mu.Unlock()
	if l.t == nil || l.broken || l.at == l.whole {
		return false, 0, 0
	}
	before := l.at
	if l.t.way == WayFlags {
		moved = l.follow()
	} else {
		moved = l.take()
	}
	return moved, l.at - before, l.whole
}

// acknowledge tells the origin what is copied, and ends the lease when the last acknowledgement has left.
func (l *lease) acknowledge() (moved bool) {
	if !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	if l.t == nil || l.broken || l.asleep || l.offer.Tag == 0 {
		return false
	}
	last := l.generation % cookieGenerations
	unsent := l.sending.Load() // asked first: what it could not send it has noted before
	if l.unheard.Load() == last+1 && (l.t.c.Kept || l.acknowledged.Load() != last) {
		l.unheard.Store(0)
		l.told = 0 // the next one says it all
	}
	before := l.told
	if l.told < l.chunk && (l.t.ordered || l.sending.Load() == 0) && l.tell() { // else an earlier one could be what stays
		moved = true
	}
	switch {
	case l.at < l.whole || l.told < l.chunk:
	case l.t.c.Kept && before == l.told && unsent == 0:
		l.asleep, moved = true, true
		l.t.served.Add(1)
		l.t.live.Add(-1)
	case !l.t.c.Kept && l.acknowledged.Load() == last:
		l.t.served.Add(1)
		l.close()
		moved = true
	}
	return moved
}

// follow copies behind the NIC: block by block, as long as flags have come, to the end of a chunk.
func (l *lease) follow() (moved bool) {
	slot := l.slots.Slice(l.chunk%l.t.c.Fold*l.t.c.SlotBytes, l.t.c.SlotBytes)
	for l.at < l.whole {
		here, marks := landed(slot, l.block, l.generation, l.seq)
		if !here {
			return moved
		}
		n, from := Payload, l.block*Block
		if marks&shortFlag != 0 {
			n = l.whole % Payload
			from += lead(n)
		}
		if n == 0 || n > l.whole-l.at {
			l.fail()
			return true
		}
		l.store(slot.Slice(from, n))
		l.at, l.seq, l.block, moved = l.at+n, l.seq+1, l.block+1, true
		if marks&endFlag != 0 || l.at == l.whole {
			l.chunk, l.block = l.chunk+1, 0
			return true
		}
		if l.block*Block == slot.Bytes {
			l.fail() // no chunk is longer than a slot
			return true
		}
	}
	return moved
}

// take copies a chunk whose immediate has come.
func (l *lease) take() bool {
	n, ok := l.inbox.there(l.chunk)
	if !ok {
		return false
	}
	if n == 0 || n > l.t.c.SlotBytes || n > l.whole-l.at {
		l.fail()
		return true
	}
	slot := l.slots.Slice(l.chunk%l.t.c.Fold*l.t.c.SlotBytes, n)
	l.store(slot)
	l.at += n
	l.chunk++
	return true
}

// store copies the next bytes of the transfer to their place.
func (l *lease) store(src mem.Range) {
	if l.spread != nil {
		l.spread.Scatter(&l.next, src)
		return
	}
	mem.Copy(l.dst.Slice(l.at, src.Bytes).Data(), src.Data())
}

// tell writes the number of copied chunks into the origin's memory; it reports false where the NIC has no room.
func (l *lease) tell() bool {
	t := l.t
	value := ack(l.offer.Tag, l.chunk)
	word := t.space.scratch.Slice(int(l.slot)*8, 8)
	word.Word64(0).Store(value) // one still in flight may send the newer value, which is as good
	op := &l.op[0]
	*op = transport.Op{
		Kind: transport.OpWrite, NSGE: 1, EP: l.ep, RAddr: l.offer.AckAddr, RKey: l.offer.AckKey,
		Cookie: t.c.Cookies + l.generation%cookieGenerations*mostLeases + uint64(l.slot),
	}
	op.SGE[0] = transport.SGE{Mem: word, LKey: t.space.ackFrom.LKey}
	if t.inline {
		op.Flags |= transport.FlagInline
	}
	if l.at == l.whole {
		op.Flags |= transport.FlagSignaled // the lease ends, and its word is used anew, when this one is sent
	}
	if t.c.Kept {
		op.Flags |= transport.FlagSignaled
		l.sending.Add(1) // before the completion can come
	}
	n, err := t.c.NIC.Post(l.op[:])
	if n == 0 && t.c.Kept {
		l.sending.Add(-1)
	}
	if err != nil {
		l.fail() // the NIC is closed, or the endpoint is none: the origin is about to be lost
		return true
	}
	if n == 1 {
		l.told = l.chunk
	}
	return n == 1
}

// fail stops the copying until the origin is lost or gives the lease back.
func (l *lease) fail() {
	l.broken = true
	l.t.broken.Add(1)
	l.t.live.Add(-1)
}

// returned ends the lease if it is the origin's and of the generation, or, where that is 0, of the tag. It reports false while the
// NIC has an acknowledgement of it: nothing more is copied or acknowledged then.
func (l *lease) returned(origin int, generation, tag uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t == nil || l.origin != origin || generation != 0 && l.generation != generation || generation == 0 && l.offer.Tag != tag {
		return true
	}
	if l.sending.Load() == 0 {
		l.close()
		return true
	}
	if !l.broken && !l.asleep {
		l.t.live.Add(-1)
	}
	l.broken = true
	return false
}

// lost ends the lease if it is the origin's, and of the generation unless that is 0.
func (l *lease) lost(origin int, generation uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t != nil && (l.origin == origin || origin == anyOrigin) && (l.generation == generation || generation == 0) {
		l.close()
	}
}

// into reports whether bytes of r are still to be copied, and whose they are.
func (l *lease) into(r mem.Range) (origin int, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.origin, l.t != nil && !l.broken && l.at < l.whole && l.dst.Addr()-r.Addr() < uint64(r.Bytes)
}

// close takes the lease back; l.mu is held.
func (l *lease) close() {
	t := l.t
	l.inbox.open(l.slot, 0)
	l.current.Store(0)
	l.t, l.dst, l.spread, l.slots = nil, mem.Range{}, nil, mem.Range{}
	t.give(l.slot, l.origin)
	if !l.broken && !l.asleep {
		t.live.Add(-1)
	}
}
