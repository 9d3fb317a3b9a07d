package prices

import "gopgas/internal/selector"

// counted is a grant of transfers through slots, which counts those before them that were asked about. The zero counted is of none.
type counted struct{ granted }

// again takes one of those that go unasked, and reports whether there was one.
func (c *counted) again(bytes int) bool {
	now := c.now()
	return now.goes(bytes) == selector.Bounce && c.take(now)
}

// count is the count, if it is of transfers of so many bytes.
func (c *counted) count(bytes int) (n int, is bool) {
	if now := c.now(); now.bytes() == bytes {
		return now.note(), true
	}
	return 0, false
}

func (c *counted) set(bytes, n, left int) { c.granted.set(grantOf(bytes, n, selector.Bounce, left)) }

// slotted is of transfers since the buffer of one that was asked about was not frequent; it counts those that are asked about one by one, since one was.
type slotted struct{ counted }

// returning is how many transfers behind one whose buffer was frequent are asked about one by one: where a program uses some buffers by turns, the
// others have been used as often.
const returning = 8

// of is for how many the use counts that is asked about.
func (s *slotted) of(bytes int) int {
	if _, is := s.count(bytes); is {
		return AskedOf
	}
	return 1
}

// next lets those go unasked that come next behind one whose buffer was not frequent, or has some asked about behind one whose was.
func (s *slotted) next(bytes int, frequent bool) {
	switch each, _ := s.count(bytes); {
	case frequent:
		s.set(bytes, returning, 0)
	case each > 0:
		s.set(bytes, each-1, 0)
	default:
		s.set(bytes, 0, AskedOf-1)
	}
}

// passing is of large transfers that somebody waits for, since their memory seems to be used once; it counts how many such were asked about one after the
// other.
type passing struct{ counted }

// steady is after how many large transfers of memory that is used once those behind them go on unasked, but for one in AskedOf.
const steady = 8

// asked notes one that was asked about: through a slot as once, by another way, which may be a trial, or of memory that returns.
func (s *passing) asked(bytes int, p selector.Protocol, returns bool) {
	switch row, _ := s.count(bytes); {
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
