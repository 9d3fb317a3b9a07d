package prices

import (
	"math/bits"
	"sync/atomic"

	"gopgas/internal/selector"
)

// A put of 16 to 64 KiB with a flush behind it, made again and again, takes its way for a tenth of its time out of the cold: its call site, the table of
// those, locks. So the puts behind one that was asked about go as it did, all but one in AskedOf.

// repeat is such a way: how many more puts take it, below, by what protocol, and of how many bytes each. The zero repeat is none.
type repeat uint64

const (
	leftBits, wayBits = 8, 8
	leftMask, wayMask = 1<<leftBits - 1, 1<<wayBits - 1
)

// way is how a put of so many bytes goes; selector.None: as it is asked about.
func (r repeat) way(bytes int) selector.Protocol {
	if r&leftMask == 0 || uint64(r>>(leftBits+wayBits)) != uint64(bytes) {
		return selector.None
	}
	return selector.Protocol(r >> leftBits & wayMask)
}

// repeats is how many sizes, as powers of two, have a repeat of their own: those that fit into a slot and whose costs are learned.
const repeats = 4

// repeatOf is the place of a size's repeat.
func (h *Habits) repeatOf(bytes int) *atomic.Uint64 { return &h.repeats[bits.Len(uint(bytes))%repeats] }

// GoOn notes how a put of so many bytes goes that a flush is thought to follow: those of as many bytes after it, of which each is over before the next,
// may go that way unasked, but for one in AskedOf.
func (h *Habits) GoOn(p selector.Protocol, bytes int) {
	h.repeatOf(bytes).Store(uint64(bytes)<<(leftBits+wayBits) | uint64(p)<<leftBits | (AskedOf - 1))
}

// GoesOn is how a put of so many bytes goes that is asked about no more, None where there is no such way, or where the last operation was a put that a flush
// is still to follow: then this is the news that none has. It takes no lock. If that way is taken GoneOn is called.
func (h *Habits) GoesOn(bytes int) selector.Protocol {
	if p := repeat(h.repeatOf(bytes).Load()).way(bytes); p != selector.None && !h.awaiting.Load() {
		return p
	}
	return selector.None
}

// GoneOn notes a put of so many bytes that went by protocol p as GoesOn says. It reports whether it may: others may have been quicker.
func (h *Habits) GoneOn(p selector.Protocol, bytes int) bool { return h.repeat(p, bytes) }

// repeat takes one of the puts that go unasked by a protocol.
func (h *Habits) repeat(p selector.Protocol, bytes int) bool {
	at := h.repeatOf(bytes)
	now := at.Load()
	return repeat(now).way(bytes) == p && at.CompareAndSwap(now, now-1)
}

// slotted is of how many bytes transfers are that go through slots, since the buffer of one that was asked about was not frequent, above, and how many more
// of them do so unasked, below.
type slotted struct{ word atomic.Uint64 }

// again takes one of those that go unasked, and reports whether there was one.
func (s *slotted) again(bytes int) bool {
	now := s.word.Load()
	return now>>leftBits == uint64(bytes) && now&leftMask > 0 && s.word.CompareAndSwap(now, now-1)
}

// of is for how many the use counts that is asked about.
func (s *slotted) of(bytes int) int {
	if s.word.Load()>>leftBits == uint64(bytes) {
		return AskedOf
	}
	return 1
}

// next lets those go unasked that come next.
func (s *slotted) next(bytes int) { s.word.Store(uint64(bytes)<<leftBits | (AskedOf - 1)) }
