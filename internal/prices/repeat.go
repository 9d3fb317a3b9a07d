package prices

import (
	"math/bits"

	"gopgas/internal/selector"
)

// A put of 16 to 64 KiB with a flush behind it, made again and again, takes its way for a tenth of its time out of the cold. So the puts behind one that was
// asked about go as it did, all but one in AskedOf; and where from registered memory each that is asked about goes the same way, ever fewer of them are.

// repeats is how many sizes, as powers of two, have a grant of their own, which notes of how many puts one is asked about: those that fit into a slot and whose
// costs are learned.
const repeats = 4

// repeatOf is the grant behind a put that was asked about and goes by a protocol, g being the one behind the last such. Past the slots, where
// nothing of a buffer is counted, one in twice as many is asked about, and again.
func (g grant) repeatOf(p selector.Protocol, bytes int) grant {
	of := AskedOf
	if p == selector.Direct && g.way() == p && g.bytes() == bytes && g.left() == 0 {
		of = seldomer(g.note())
	}
	return grantOf(bytes, of, p, of-1)
}

// seldomer is a prime, as AskedOf is.
func seldomer(of int) int {
	switch of {
	case AskedOf:
		return 13
	case 13:
		return 29
	}
	return 61
}

// repeated is what a size's grant is taken from.
func (h *Habits) repeated(bytes int) *granted { return &h.repeats[bits.Len(uint(bytes))%repeats] }

// GoOn notes how a put of so many bytes goes that a flush is thought to follow: those of as many bytes after it, of which each is over before the next,
// may go that way unasked, but for one in some.
func (h *Habits) GoOn(p selector.Protocol, bytes int) {
	g := h.repeated(bytes)
	g.set(g.now().repeatOf(p, bytes))
}

// GoesOn is how a put of so many bytes goes that is asked about no more, None where there is no such way, or where the last operation was a put that a flush
// is still to follow: then this is the news that none has. It takes no lock. If that way is taken GoneOn is called.
func (h *Habits) GoesOn(bytes int) selector.Protocol {
	if p := h.repeated(bytes).now().goes(bytes); p != selector.None && !h.awaiting.Load() {
		return p
	}
	return selector.None
}

// GoneOn notes a put of so many bytes that went by protocol p as GoesOn says. It reports whether it may: others may have been quicker.
func (h *Habits) GoneOn(p selector.Protocol, bytes int) bool {
	g := h.repeated(bytes)
	now := g.now()
	return now.goes(bytes) == p && g.take(now)
}
