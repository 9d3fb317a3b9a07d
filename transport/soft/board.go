package soft

import (
	"fmt"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
)

// Layout of a board. What different threads write lies on different cache lines. Offsets in bytes.
const (
	boardMagic = 0x31746f732d736167 // "gas-sot1"

	offMagic   = 0
	offState   = 8 // boardOpening...
	offNonce   = 16
	offNonce2  = 24
	offSize    = 32
	offRegions = 40
	offBell    = 64  // rings, sleepers: 4 bytes each
	offBits    = 128 // asked, then news: a bit for each rank

	headBytes = 48 // what a peer reads before it maps the rest

	lineBytes   = 64
	recordBytes = 512 // what one rank tells another of itself
	entryBytes  = 32  // of the key table: rkey, address, bytes, access
	mailSlots   = 16  // requests of one rank to another that are not yet answered
	mailBytes   = 320 // of a request
)

// States of a board, and so of its owner's engine.
const (
	boardOpening uint64 = iota
	boardOpen
	boardClosing // the owner is leaving: nothing new is performed
	boardDrained // its engine has ended: what it has not answered it never will
)

// board is one rank's memory that its peers map: its doorbell, its key table, and what the peers ask of it.
// Nothing in it is trusted: indices are masked, and what a request names is checked against the owner's own
// tables.
type board struct {
	mem     mem.Range
	size    int // ranks
	regions int // entries of the key table, a power of two
}

// boardBytes returns how large a board is.
func boardBytes(size, regions int) int {
	b := board{size: size, regions: regions}
	return b.mailOff(size, 0)
}

// BoardBytes is the memory of a rank's queues in a world of so many ranks; every peer that it is connected with maps it.
func (c Config) BoardBytes(ranks int) int {
	return boardBytes(ranks, ceilPow2(c.withDefaults().MaxRegions))
}

func (b *board) words() int          { return (b.size + 63) / 64 }
func (b *board) askedOff() int       { return offBits }
func (b *board) newsOff() int        { return b.askedOff() + lines(8*b.words()) }
func (b *board) acceptOff(r int) int { return b.newsOff() + lines(8*b.words()) + 8*r }
func (b *board) linkOff(r int) int   { return lines(b.acceptOff(b.size)) + lineBytes*r }
func (b *board) hazardOff(r int) int { return b.linkOff(b.size) + lineBytes*r }
func (b *board) recordOff(r int) int { return b.hazardOff(b.size) + recordBytes*r }
func (b *board) entryOff(i int) int  { return b.recordOff(b.size) + entryBytes*i }
func (b *board) mailOff(r, i int) int {
	return lines(b.entryOff(b.regions)) + mailBytes*(mailSlots*r+i)
}

// lines rounds up to whole cache lines.
func lines(n int) int { return (n + lineBytes - 1) &^ (lineBytes - 1) }

func (b *board) word(off int) *atomic.Uint64 { return b.mem.Word64(off) }

func (b *board) state() *atomic.Uint64       { return b.word(offState) }
func (b *board) asked(w int) *atomic.Uint64  { return b.word(b.askedOff() + 8*w) }
func (b *board) news(w int) *atomic.Uint64   { return b.word(b.newsOff() + 8*w) }
func (b *board) accept(r int) *atomic.Uint64 { return b.word(b.acceptOff(r)) }
func (b *board) link(r int) *atomic.Uint64   { return b.word(b.linkOff(r)) }
func (b *board) hazard(r int) *atomic.Uint64 { return b.word(b.hazardOff(r)) }
func (b *board) record(r int) mem.Range      { return b.mem.Slice(b.recordOff(r), recordBytes) }
func (b *board) mail(r, i int) mail          { return mail{b.mem.Slice(b.mailOff(r, i), mailBytes)} }

func (b *board) bell() sched.Bell {
	return sched.NewBell(b.mem.Word32(offBell), b.mem.Word32(offBell+4))
}
func (b *board) askedBy(r int) *atomic.Uint64 { return b.asked(r / 64) }

// setBit sets rank r's bit in a bitmap's word, unless it is set.
func setBit(w *atomic.Uint64, r int) {
	if bit := uint64(1) << (r & 63); w.Load()&bit == 0 {
		w.Or(bit)
	}
}

// tell sets rank r's bit among the board's news and wakes its engine.
func (b *board) tell(r int) {
	setBit(b.news(r/64), r)
	b.bell().Ring()
}

// initialise writes the head of an own, zeroed board. It is open for peers when its state says so.
func (b *board) initialise(n nonce) {
	b.word(offMagic).Store(boardMagic)
	b.word(offNonce).Store(n[0])
	b.word(offNonce2).Store(n[1])
	b.word(offSize).Store(uint64(b.size))
	b.word(offRegions).Store(uint64(b.regions))
	b.state().Store(boardOpen)
}

// openBoard checks a peer's board that has been mapped.
func openBoard(m mem.Range, size int, n nonce) (board, error) {
	b := board{mem: m, size: size}
	if m.Bytes < boardBytes(size, 1) {
		return b, fmt.Errorf("the peer's queues are %d bytes, too few for %d ranks", m.Bytes, size)
	}
	regions := b.word(offRegions).Load()
	switch {
	case b.word(offMagic).Load() != boardMagic, b.word(offNonce).Load() != n[0], b.word(offNonce2).Load() != n[1]:
		return b, errNotItsBoard
	case b.word(offSize).Load() != uint64(size):
		return b, fmt.Errorf("the peer belongs to a job of %d ranks, this one has %d", b.word(offSize).Load(), size)
	case regions == 0 || regions&(regions-1) != 0 || regions > 1<<16 || boardBytes(size, int(regions)) != m.Bytes:
		return b, fmt.Errorf("the peer's queues are %d bytes with room for %d registrations, which does not fit", m.Bytes, regions)
	}
	b.regions = int(regions)
	return b, nil
}

// publish lets peers use a registration. Its slot is nobody's: no peer is inside it.
func (b *board) publish(slot int, rkey uint64, r mem.Range, access uint64) {
	off := b.entryOff(slot)
	b.word(off + 8).Store(r.Addr())
	b.word(off + 16).Store(uint64(r.Bytes))
	b.word(off + 24).Store(access)
	b.word(off).Store(rkey)
}

// withdraw makes a registration void for peers. Who is inside shows so by its hazard.
func (b *board) withdraw(slot int) { b.word(b.entryOff(slot)).Store(0) }

// allows reports whether the key table allows the access. The caller's hazard names the slot, so what the table
// says stays true until the hazard is taken back.
func (b *board) allows(slot int, addr, rkey uint64, n int, need uint64) bool {
	return b.keys()[slot].allows(addr, rkey, n, need)
}

// keyEntry is an entry of the key table: rkey, address, bytes, access.
type keyEntry [entryBytes / 8]atomic.Uint64

// keys is the key table.
func (b *board) keys() []keyEntry {
	return mem.Slice[keyEntry](b.mem.Slice(b.entryOff(0), entryBytes*b.regions))
}

func (e *keyEntry) allows(addr, rkey uint64, n int, need uint64) bool {
	if rkey == 0 || e[0].Load() != rkey || e[3].Load()&need != need {
		return false
	}
	at, bytes := addr-e[1].Load(), e[2].Load()
	return at <= bytes && uint64(n) <= bytes-at
}

// A link is the state of the connection of two ranks, in one word of the lower rank's board: the incarnation
// and how it stands.
const (
	linkNone   = iota
	linkUp     //
	linkBroken // an operation failed; both ends flush what they have
	linkEnded  // one end has disconnected
	linkGone   // one of the ranks is gone

	linkBits = 8
)

func linkWord(inc uint32, state uint64) uint64 { return uint64(inc)<<linkBits | state }

func linkState(w uint64) uint64 { return w & (1<<linkBits - 1) }

func linkInc(w uint64) uint32 { return uint32(w >> linkBits) }

// mail is the place of one request. The asker fills it and sets its state to pending; the owner of the board
// claims it, performs it, and sets it to done. An asker that will not wait cancels what is not yet claimed.
type mail struct{ mem mem.Range }

// Fields of a request.
const (
	mailState  = 0 // sequence number and phase
	mailKind   = 8 // incarnation; kind; pieces, or 0 for a payload in the request itself
	mailImm    = 16
	mailRAddr  = 24
	mailRKey   = 32
	mailArg0   = 40
	mailArg1   = 48
	mailLen    = 56
	mailStatus = 64 // the answer
	mailResult = 72

	mailPayload = 128
	maxInline   = mailBytes - mailPayload
)

// Phases of a request.
const (
	mailFree uint64 = iota
	mailPending
	mailClaimed
	mailDone
	mailCancelled

	phaseBits = 3
)

func mailWord(seq, phase uint64) uint64 { return seq<<phaseBits | phase }

func (m mail) word(off int) *atomic.Uint64 { return m.mem.Word64(off) }

func (m mail) payload(n int) mem.Range { return m.mem.Slice(mailPayload, n) }
