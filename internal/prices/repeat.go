package prices

import (
	"math/bits"
	"sync/atomic"

	"gopgas/internal/selector"
)

// A put of 16 to 64 KiB with a flush behind it, made again and again, takes its way for a tenth of its time out of the cold: its call site, the table of
// those, locks. So the puts behind one that was asked about go as it did, all but one in AskedOf; and where from registered memory each that is asked about
// goes the same way, ever fewer of them are.

// repeat is such a way: how many more puts take it, below, by what protocol, of how many one is asked about, and of how many bytes each is. The zero
// repeat is none.
type repeat uint64

const (
	leftBits, wayBits, ofBits = 8, 8, 8
	leftMask, wayMask, ofMask = 1<<leftBits - 1, 1<<wayBits - 1, 1<<ofBits - 1
)

// repeatOf is the repeat behind a put that was asked about.
func repeatOf(p selector.Protocol, bytes, of int) repeat {
	return repeat(bytes)<<(ofBits+wayBits+leftBits) | repeat(of)<<(wayBits+leftBits) | repeat(p)<<leftBits | repeat(of-1)
}

// way is how a put of so many bytes goes; selector.None: as it is asked about.
func (r repeat) way(bytes int) selector.Protocol {
	if r&leftMask == 0 || r.bytes() != bytes {
		return selector.None
	}
	return r.protocol()
}

func (r repeat) protocol() selector.Protocol { return selector.Protocol(r >> leftBits & wayMask) }
func (r repeat) of() int                     { return int(r >> (wayBits + leftBits) & ofMask) }
func (r repeat) bytes() int                  { return int(r >> (ofBits + wayBits + leftBits)) }

// next is the repeat behind a put of so many bytes that was asked about and goes by a protocol, r being the one behind the last such. Past the slots, where
// nothing of a buffer is counted, one in twice as many is asked about, and again; those numbers are primes, as AskedOf is.
func (r repeat) next(p selector.Protocol, bytes int) repeat {
	of := AskedOf
	if p == selector.Direct && r.protocol() == p && r.bytes() == bytes && r&leftMask == 0 {
		of = seldomer(r.of())
	}
	return repeatOf(p, bytes, of)
}

func seldomer(of int) int {
	switch of {
	case AskedOf:
		return 13
	case 13:
		return 29
	}
	return 61
}

// repeats is how many sizes, as powers of two, have a repeat of their own: those that fit into a slot and whose costs are learned.
const repeats = 4

// repeatAt is the place of a size's repeat.
func (h *Habits) repeatAt(bytes int) *atomic.Uint64 { return &h.repeats[bits.Len(uint(bytes))%repeats] }

// GoOn notes how a put of so many bytes goes that a flush is thought to follow: those of as many bytes after it, of which each is over before the next,
// may go that way unasked, but for one in some.
func (h *Habits) GoOn(p selector.Protocol, bytes int) {
	at := h.repeatAt(bytes)
	at.Store(uint64(repeat(at.Load()).next(p, bytes)))
}

// GoesOn is how a put of so many bytes goes that is asked about no more, None where there is no such way, or where the last operation was a put that a flush
// is still to follow: then this is the news that none has. It takes no lock. If that way is taken GoneOn is called.
func (h *Habits) GoesOn(bytes int) selector.Protocol {
	if p := repeat(h.repeatAt(bytes).Load()).way(bytes); p != selector.None && !h.awaiting.Load() {
		return p
	}
	return selector.None
}

// GoneOn notes a put of so many bytes that went by protocol p as GoesOn says. It reports whether it may: others may have been quicker.
func (h *Habits) GoneOn(p selector.Protocol, bytes int) bool { return h.repeat(p, bytes) }

// repeat takes one of the puts that go unasked by a protocol.
func (h *Habits) repeat(p selector.Protocol, bytes int) bool {
	at := h.repeatAt(bytes)
	now := at.Load()
	return repeat(now).way(bytes) == p && at.CompareAndSwap(now, now-1)
}

// unasked is of how many bytes transfers are that go through slots as those before them did, above, a count of those, and how many more go there without being
// asked about, below. The zero unasked is of none.
type unasked struct{ word atomic.Uint64 }

// again takes one of those that go unasked, and reports whether there was one.
func (u *unasked) again(bytes int) bool {
	now := u.word.Load()
	return now>>(ofBits+leftBits) == uint64(bytes) && now&leftMask > 0 && u.word.CompareAndSwap(now, now-1)
}

// counted is the count, if it is of transfers of so many bytes.
func (u *unasked) counted(bytes int) (n uint64, is bool) {
	now := u.word.Load()
	if now>>(ofBits+leftBits) != uint64(bytes) {
		return 0, false
	}
	return now >> leftBits & ofMask, true
}

func (u *unasked) set(bytes int, n, left uint64) {
	u.word.Store(uint64(bytes)<<(ofBits+leftBits) | n<<leftBits | left)
}

// slotted is of transfers since the buffer of one that was asked about was not frequent; it counts those that are asked about one by one, since one was.
type slotted struct{ unasked }

// returning is how many transfers behind one whose buffer was frequent are asked about one by one: where a program uses some buffers by turns, the
// others have been used as often.
const returning = 8

// of is for how many the use counts that is asked about.
func (s *slotted) of(bytes int) int {
	if _, is := s.counted(bytes); is {
		return AskedOf
	}
	return 1
}

// next lets those go unasked that come next behind one whose buffer was not frequent, or has some asked about behind one whose was.
func (s *slotted) next(bytes int, frequent bool) {
	switch each, _ := s.counted(bytes); {
	case frequent:
		s.set(bytes, returning, 0)
	case each > 0:
		s.set(bytes, each-1, 0)
	default:
		s.set(bytes, 0, AskedOf-1)
	}
}

// passing is of large transfers that somebody waits for, since their memory seems to be used once; it counts how many such were asked about one after the
// other. To ask about one took 3 to 8 us out of the cold: what is registered, what is known of the memory, of its call site and of costs lies in some
// dozens of lines.
type passing struct{ unasked }

// steady is after how many large transfers of memory that is used once those behind them go on unasked, but for one in AskedOf.
const steady = 8

// asked notes one that was asked about: through a slot as once, by another way, which may be a trial, or of memory that returns.
func (s *passing) asked(bytes int, p selector.Protocol, returns bool) {
	switch row, _ := s.counted(bytes); {
	case returns:
		s.set(bytes, 0, 0)
	case p != selector.Bounce:
		s.set(bytes, row/2, 0)
	case row+1 >= steady:
		s.set(bytes, steady, AskedOf-1)
	default:
		s.set(bytes, row+1, 0)
	}
}

// Passes reports whether a large transfer of so many bytes, for whose end somebody waits or a flush, goes through slots without being asked about, and notes
// it: those before it did, of memory that is used once. A put behind one that no flush has followed yet is asked about: that is the news. It takes no lock.
func (h *Habits) Passes(get bool, bytes int) bool {
	return (get || !h.awaiting.Load()) && h.passing[side(get)].again(bytes)
}

// Passed notes how a large transfer goes that was asked about, and whether its memory is registered or thought to return.
func (h *Habits) Passed(get bool, bytes int, p selector.Protocol, returns bool) {
	if h.begun.Load() {
		h.passing[side(get)].asked(bytes, p, returns)
	}
}
