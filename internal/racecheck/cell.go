package racecheck

// Kind is what an access does to an element.
type Kind uint8

// The kinds of accesses.
const (
	Read   Kind = iota
	Write       // plainly
	Update      // atomically: not in conflict with other updates
	Look        // read atomically: in conflict with plain writes alone
)

// conflicts reports whether two accesses to one element need an order.
func (k Kind) conflicts(o Kind) bool {
	if k == Look || o == Look {
		return k == Write || o == Write
	}
	return k != o || k == Write
}

// covers reports whether whatever is in conflict with o is in conflict with k.
func (k Kind) covers(o Kind) bool { return k == Write || k == o || o == Look }

// Done says when an access has come about.
type Done uint8

// The ends of accesses.
const (
	AtReturn Done = iota // when the call returns
	ByFlush              // when its origin flushes the target, or does what does
	ByWait               // when the program has waited for it
)

// Access is what is remembered of an access, beside who made it and when.
type Access struct {
	Kind Kind
	Done Done
	Site Site
}

// cell is an access as it is remembered: from the low bits, 32 for the epoch, 12 for the site, 6 for the origin, 2 for
// the kind, and later, pending, used. The zero cell is empty.
type cell uint64

const (
	siteShift           = 32
	siteBits            = 12
	originShift         = siteShift + siteBits
	originBits          = 6
	kindShift           = originShift + originBits
	kindBits            = 2
	laterBit       cell = 1 << (kindShift + kindBits)
	pendingBit          = laterBit << 1
	usedBit             = pendingBit << 1
	cellBytes           = 8
	fewest, widest      = 4, 16 // cells of an element
)

// MaxRanks is the largest world that can be checked.
const MaxRanks = 1 << originBits

func newCell(epoch uint32, origin int, a Access) cell {
	c := usedBit | cell(epoch) | cell(a.Site)<<siteShift | cell(origin)<<originShift | cell(a.Kind)<<kindShift
	switch a.Done {
	case ByFlush:
		c |= laterBit
	case ByWait:
		c |= pendingBit
	}
	return c
}

func (c cell) epoch() uint32 { return uint32(c) }
func (c cell) site() Site    { return Site(c >> siteShift & (1<<siteBits - 1)) }
func (c cell) origin() int   { return int(c >> originShift & (1<<originBits - 1)) }
func (c cell) kind() Kind    { return Kind(c >> kindShift & (1<<kindBits - 1)) }
func (c cell) later() bool   { return c&laterBit != 0 }
func (c cell) pending() bool { return c&pendingBit != 0 }

// sameClock reports whether two cells are counted by one entry of a clock, so that who knows the later one, o, knows both.
// Pending ones end each for itself.
func (c cell) sameClock(o cell) bool {
	if c.pending() || o.pending() {
		return c.pending() && o.pending() && c.origin() == o.origin() && c.site() == o.site()
	}
	return c.origin() == o.origin() && c.later() == o.later()
}

// width is the number of cells of an element in a world of n ranks. A rank can have three accesses at once that are in
// conflict with nobody's: two reads, of which it has waited for one, or two updates, of which it has flushed one, and a look.
func width(n int) int { return min(max(3*n, fewest), widest) }

// enter adds access a to the cells of an element. It calls hit for each earlier one that is in conflict with a and not
// before it, and forgets those that a covers: whoever comes later and knows of a knows of them too (Flanagan, Freund,
// FastTrack, 2009, where an element has one write). forgot is true if there was no room for all that ought to be kept.
func enter(cells []cell, a cell, before func(cell) bool, hit func(cell)) (forgot bool) {
	free, raced := -1, -1
	for i, c := range cells {
		if c == 0 {
			if free < 0 {
				free = i
			}
			continue
		}
		ordered := before(c)
		if !ordered && c.kind().conflicts(a.kind()) {
			hit(c)
			raced = i
		}
		if (ordered || c.sameClock(a)) && a.kind().covers(c.kind()) {
			cells[i] = 0
			if free < 0 {
				free = i
			}
		}
	}
	switch {
	case free >= 0:
		cells[free] = a
	case raced >= 0: // it has been reported
		cells[raced] = a
	default:
		cells[0], forgot = a, true
	}
	return forgot
}

// settle turns the pending access of origin and site among an element's cells into one that is done at epoch now.
func settle(cells []cell, was, now cell) {
	for i, c := range cells {
		if c.pending() && c.origin() == was.origin() && c.kind() == was.kind() && c.site() == was.site() {
			cells[i] = now
		}
	}
}
