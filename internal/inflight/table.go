package inflight

import (
	"sync/atomic"

	"gopgas/internal/bounce"
	"gopgas/internal/invariants"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// ScratchBytes is the memory of a piece without a slot: for the result of an atomic, and for small payloads.
const ScratchBytes = 256

// MostPieces is how many pieces a table has at most, beside those that are kept aside.
const MostPieces = 256

// asides is how many pieces are kept aside: see TakeAside.
const asides = 8

// Table is what is in flight. It is used after Init, and not copied.
type Table struct {
	pieces *[MostPieces + asides]Piece
	free   []uint8 // pieces
	aside  []int32 // likewise, of those that are kept aside

	// What the poller gives back without the lock: he writes at the tail, and who has the lock takes at the head. There is always room, since a
	// piece is in it once.
	back [MostPieces]uint8
	tail atomic.Uint32
	head uint32

	begun [MostPieces + asides]begun // by piece
	ever  int32                      // pieces behind these were never anybody's; under the lock

	transfers []transfer
	closed    []int32 // transfers that are free

	failed   map[ticket]failure
	untold   []ticket     // of those that no flush tells, the oldest first; some have been told
	forgets  bool         // some were forgotten
	failures atomic.Bool  // there are some, or were, for who does not hold the lock
	fetching atomic.Int32 // non-blocking atomics in flight

	pool                *bounce.Pool
	scratch             mem.Range
	poolKey, scratchKey uint64
}

// begun is when a piece was begun. These lie close together, for who looks at all of them.
type begun struct {
	number atomic.Uint64 // among all that its rank was sent; 0: it is over
	rank   int           // under the lock
}

// Piece is one operation. From TryAcquire to Free it is one's who has its number: first the caller's, then, from its posting to
// its completion, the poller's, and when it is Kept after that the waiter's.
type Piece struct {
	op [1]transport.Op // here, so that posting allocates nothing

	marks    Marks
	Tries    int8 // how often it was posted again
	slot     int32
	transfer int32
	Rank     int
	Seq      uint64    // among the operations to its rank
	Dst      mem.Range // what it brings is copied there when it is done: see Into
	Inner    uint64    // the name by which who has had it Piped knows it
	scratch  mem.Range // its own

	over atomic.Uint64 // of one that is Awaited: 1 when it has ended
	err  error         // how, then

	taken bool // it is somebody's; kept where invariants are checked
}

// none is the number of no piece.
const none = int32(-1)

// Marks are what few pieces have, a bit each: that a piece has none of it one look tells.
type Marks uint16

// The marks of a piece.
const (
	Kept    Marks = 1 << iota // the waiter takes the result from its buffer and frees it
	Awaited                   // the same, and it has no transfer: who has posted it waits for nothing else
	Lent                      // its owner gives something back when it ends
	Tied                      // its owner lets go of something under the lock when it ends
	Piped                     // it is a pipe's, or a measurement's
	Adds                      // it is an atomic for whose result nobody waits
	Shows                     // it tells the target that what was put before is there

	brings  // it has a Dst
	fetches // it is a non-blocking atomic
	slotted // it has a slot
	joined  // it is a part of a transfer
	apart   // it is one of those that are kept aside
)

// Mark adds to a piece's marks.
func (p *Piece) Mark(m Marks) { p.marks |= m }

// Unmark takes marks from a piece, and reports whether it had one of them.
func (p *Piece) Unmark(m Marks) (had bool) {
	had = p.marks&m != 0
	p.marks &^= m
	return had
}

// Has reports whether a piece has any of these marks.
func (p *Piece) Has(m Marks) bool { return p.marks&m != 0 }

// Into has what the piece brings be copied to dst when it is done.
func (p *Piece) Into(dst mem.Range) {
	p.Dst = dst
	p.Mark(brings)
}

// Forget lets go of the memory between which and the target's the piece's operation was, which is over: it is somebody else's, who may let go of it, too,
// and the piece may not be used again for long.
func (p *Piece) Forget() {
	op := &p.op[0]
	op.SGE[0].Mem.Base = nil
	for i := 1; i < int(op.NSGE); i++ {
		op.SGE[i].Mem.Base = nil
	}
}

// Op is the place of the piece's operation: see Table.Op.
func (p *Piece) Op() *[1]transport.Op { return &p.op }

// Plain reports whether nobody but who waits for it, or has lent it something, is to learn that the piece has ended well, and what it brings stays
// in its buffer.
func (p *Piece) Plain() bool { return !p.Has(Tied | Piped | Adds | brings) }

// Bare reports whether a piece is Plain, nobody waits for it, and it has nothing lent and no slot either.
func (p *Piece) Bare() bool { return p.marks&^Shows == 0 }

// Sought reports whether a piece is Plain and Awaited, and has nothing lent.
func (p *Piece) Sought() bool { return p.marks&^(slotted|Shows) == Awaited }

// Over reports whether a piece that is Awaited has ended.
func (p *Piece) Over() bool { return p.over.Load() != 0 }

// End says that a piece that is Awaited has ended: from here on it is its waiter's.
func (p *Piece) End() { mem.Publish(&p.over, 1) }

// Err is how a piece that is Awaited, and over, has ended.
func (p *Piece) Err() error { return p.err }

// Config is what a Table is made of.
type Config struct {
	Pieces     int // MostPieces at most
	Pool       *bounce.Pool
	PoolKey    uint64
	Scratch    mem.Range // ScratchBytes for each piece
	ScratchKey uint64
}

// Init gives the table room for c.Pieces pieces and as many transfers. Nothing in it allocates afterwards, but for failures.
func (t *Table) Init(c Config) {
	t.pieces, t.transfers = new([MostPieces + asides]Piece), make([]transfer, c.Pieces)
	t.failed = make(map[ticket]failure)
	t.pool, t.poolKey, t.scratch, t.scratchKey = c.Pool, c.PoolKey, c.Scratch, c.ScratchKey
	for i := c.Pieces - 1; i >= 0; i-- {
		t.pieces[i].scratch = c.Scratch.Slice(i*ScratchBytes, ScratchBytes)
		t.free = append(t.free, uint8(i))
		t.closed = append(t.closed, int32(i))
	}
	for i := range int32(asides) {
		t.aside = append(t.aside, MostPieces+i)
	}
}

// Piece returns piece id, for whose it is.
func (t *Table) Piece(id int32) *Piece { return &t.pieces[id] }

// Op is the place of piece id's operation, which stays until it is done: it may have to be posted again.
func (t *Table) Op(id int32) []transport.Op { return t.pieces[id].op[:] }

// Lay writes the operation of piece id, between so many bytes of its buffer and the target's memory, to its place: all but what whoever posts it knows.
func (t *Table) Lay(id int32, kind transport.Kind, flags uint8, bytes int, raddr, rkey uint64) *transport.Op {
	p := &t.pieces[id]
	op := p.Lay(kind, flags, raddr, rkey)
	op.SGE[0].Mem, op.SGE[0].LKey = t.Buffer(id, bytes)
	return op
}

// Grow has the operation of p, which has been laid with a part of p's scratch memory, carry so many bytes more, and returns where these lie. It
// goes inline as long as it has no more than inline. False: there is no room.
func (p *Piece) Grow(bytes, inline int) (more mem.Range, ok bool) {
	s := &p.op[0].SGE[0].Mem
	all := s.Bytes + bytes
	if all > ScratchBytes {
		return mem.Range{}, false
	}
	more = p.scratch.Slice(s.Bytes, bytes)
	if s.Bytes = all; all > inline {
		p.op[0].Flags &^= transport.FlagInline
	}
	return more, true
}

// Lay is Table.Lay but for this rank's memory.
func (p *Piece) Lay(kind transport.Kind, flags uint8, raddr, rkey uint64) *transport.Op {
	op := &p.op[0]
	op.Kind, op.Flags, op.NSGE, op.Imm = kind, flags, 1, 0
	op.RAddr, op.RKey, op.Arg0, op.Arg1 = raddr, rkey, 0, 0
	return op
}

// Scratch has the operation of a piece that has no slot lie between the first bytes of its scratch memory: ScratchBytes at most.
func (t *Table) Scratch(p *Piece, bytes int) {
	s := &p.op[0].SGE[0]
	s.Mem.Base, s.Mem.Bytes, s.LKey = p.scratch.Base, bytes, t.scratchKey
}

// Buffer is the NIC memory of piece id for so many bytes, and its key: its slot, or its scratch memory.
func (t *Table) Buffer(id int32, bytes int) (mem.Range, uint64) {
	p := &t.pieces[id]
	if !p.Has(slotted) && uint(bytes) <= ScratchBytes {
		return mem.Range{Base: p.scratch.Base, Bytes: bytes}, t.scratchKey
	}
	return t.slotOf(p, bytes)
}

// slotOf is Buffer for a piece with a slot.
func (t *Table) slotOf(p *Piece, bytes int) (mem.Range, uint64) {
	if !p.Has(slotted) {
		return p.scratch.Slice(0, bytes), t.scratchKey // which panics
	}
	return t.pool.Range(p.slot).Slice(0, bytes), t.poolKey
}

// Capacity is the size of piece id's buffer.
func (t *Table) Capacity(id int32) int {
	if t.pieces[id].Has(slotted) {
		return t.pool.SlotBytes()
	}
	return ScratchBytes
}

// TryAcquire takes a piece for an operation to rank, with a slot if wanted; ok is false where there is none. Under the lock.
func (t *Table) TryAcquire(rank int, slot bool) (id int32, ok bool) {
	if !slot {
		return t.TryTake(rank)
	}
	s, ok := t.pool.Take()
	if !ok {
		return none, false
	}
	if id, ok = t.TryTake(rank); !ok {
		t.pool.Give(s)
		return none, false
	}
	p := &t.pieces[id]
	p.slot = s
	p.Mark(slotted)
	return id, true
}

// TryTake is TryAcquire without a slot.
func (t *Table) TryTake(rank int) (id int32, ok bool) {
	p, id := t.Take()
	if p == nil {
		return none, false
	}
	p.Rank = rank
	return id, true
}

// Take takes a piece, or nil, for an operation to the rank that the caller sets. What the poller gave back goes first: mostly that is one at a time,
// and in the caches still. Under the lock.
func (t *Table) Take() (p *Piece, id int32) {
	var k uint8
	if t.head != t.tail.Load() {
		k = t.back[uint8(t.head)]
		t.head++
	} else if last := len(t.free) - 1; last >= 0 {
		k = t.free[last]
		t.free = t.free[:last]
	} else {
		return nil, none
	}
	p = &t.pieces[k]
	if invariants.Enabled {
		p.enter()
	}
	return p, int32(k) // all that is not said here is as Free has left it
}

// TakeAside is TryTake of one of a few more pieces, which have no buffer: for operations that end by themselves and that somebody may wait for who has
// pieces meanwhile, so that these may be all there are.
func (t *Table) TakeAside(rank int) (id int32, ok bool) {
	last := len(t.aside) - 1
	if last < 0 {
		return none, false
	}
	id, t.aside = t.aside[last], t.aside[:last]
	p := &t.pieces[id]
	if invariants.Enabled {
		p.enter()
	}
	p.Rank = rank
	p.Mark(apart)
	return id, true
}

// Number notes that piece id is the number-th of what its rank was sent, from 1 on. Under the lock.
func (t *Table) Number(p *Piece, id int32, number uint64) {
	b := &t.begun[id]
	b.rank, t.ever = p.Rank, max(t.ever, id+1)
	mem.Publish(&b.number, number)
}

// Unnumber notes that piece id is over. It needs no lock, and comes before anybody else can have the piece.
func (t *Table) Unnumber(id int32) { mem.Publish(&t.begun[id].number, 0) }

// Oldest returns the least number, below most, of what is not over of what a rank was sent, or most. Under the lock.
func (t *Table) Oldest(rank int, most uint64) uint64 {
	for i := range t.ever {
		b := &t.begun[i]
		if k := b.number.Load(); k != 0 && k < most && b.rank == rank {
			most = k
		}
	}
	return most
}

// Fetches has what piece id brings be the old value of a non-blocking atomic, for dst, and reports whether it is the only one in flight.
func (t *Table) Fetches(id int32, dst mem.Range) (only bool) {
	p := &t.pieces[id]
	p.Into(dst)
	p.Mark(fetches)
	return t.fetching.Add(1) == 1
}

// Fetching is how many non-blocking atomics are in flight.
func (t *Table) Fetching() int { return int(t.fetching.Load()) }

// Fetched reports whether piece id is a non-blocking atomic.
func (t *Table) Fetched(id int32) bool { return t.pieces[id].Has(fetches) }

// Free gives a piece and its slot back. Under the lock.
func (t *Table) Free(id int32) {
	p := &t.pieces[id]
	if invariants.Enabled {
		p.leave()
	}
	p.Tries = 0
	if p.marks != 0 {
		aside := p.Has(apart)
		if t.strip(p); aside {
			t.aside = append(t.aside, id)
			return
		}
	}
	t.free = append(t.free, uint8(id))
}

// FreeSought is Free for a piece that is Sought, and has ended well.
func (t *Table) FreeSought(p *Piece, id int32) {
	if p.Has(slotted) || invariants.Enabled {
		t.Free(id)
		return
	}
	mem.Publish(&p.over, 0)
	p.marks, p.Tries = 0, 0
	t.free = append(t.free, uint8(id))
}

// GiveBack is Free for who polls, and needs no lock for it: a piece that is Bare, and has ended well.
func (t *Table) GiveBack(p *Piece, id int32) {
	if invariants.Enabled {
		p.leave()
	}
	p.marks, p.Tries = 0, 0
	tail := t.tail.Load()
	t.back[uint8(tail)] = uint8(id)
	mem.Publish32(&t.tail, tail+1)
}

// enter is what is checked of a piece that is somebody's from here on.
func (p *Piece) enter() {
	invariants.Check(!p.taken, "a piece is taken twice") // F1
	p.taken = true
}

// leave is what is checked of a piece that nobody has from here on.
func (p *Piece) leave() {
	invariants.Check(p.taken, "a piece is freed twice") // F1
	invariants.Check(!p.Has(Tied|Lent), "a piece is freed that is still tied, or has something lent")
	p.taken = false
	invariants.Mangle(p.scratch.Data())
}

// strip takes from a piece what its marks say that it has, and the marks.
func (t *Table) strip(p *Piece) {
	if p.Has(Awaited) {
		p.err = nil
		mem.Publish(&p.over, 0)
	}
	if p.Has(slotted) {
		t.pool.Give(p.slot)
	}
	if p.Has(fetches) {
		t.fetching.Add(-1)
	}
	if p.Has(brings) {
		p.Dst = mem.Range{}
	}
	p.Forget()
	p.marks = 0
}

// Settle ends a piece of rank that the NIC has reported, or will not. If tell is set its transfer is over, and the next flush of
// rank has a failure to tell of: see Untold. If loose is set err is nobody's: no handle is for it, and no pipe. What is kept stays its
// waiter's; any other piece is free. Under the lock.
func (t *Table) Settle(id int32, err error) (rank int, tell, loose bool) {
	p := &t.pieces[id]
	rank = p.Rank
	if p.Has(Awaited) {
		p.err = err
		p.End() // last
		return rank, false, false
	}
	if p.Has(joined) {
		_, tell = t.PartDone(p.transfer, err) // with the same rank
	} else {
		loose = err != nil && !p.Has(Piped)
	}
	if !p.Has(Kept) {
		t.Free(id)
	}
	return rank, tell, loose
}
