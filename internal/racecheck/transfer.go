package racecheck

import (
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"gopgas/internal/mem"
)

// Transfer is one whose buffer is the library's until the program has waited for it.
type Transfer struct {
	w    *Window
	put  bool
	site Site
	rank int // the target
	buf  mem.Range
	sum  uint64 // of the buffer's bytes when the transfer began
	far  span   // what a get reads
	near []span // what of this rank's own parts the buffer is

	fetch   bool  // an atomic
	learned clock // by it
}

// span is a run of elements.
type span struct {
	w               *Window
	member, disp, n int
}

// Put checks a put of src to n elements of the member's part from disp on, before it is made, or, if nb is true, the
// beginning of one; only then it returns a Transfer.
func (w *Window) Put(op string, member, disp, n int, src mem.Range, nb bool) *Transfer {
	return w.transfer(op, member, disp, n, src, true, nb)
}

// Get is the same for a get to dst. One that is waited for must have brought its data when the program learns of its
// beginning: what is in dst then is compared with what is there in the end.
func (w *Window) Get(op string, member, disp, n int, dst mem.Range, nb bool) *Transfer {
	return w.transfer(op, member, disp, n, dst, false, nb)
}

func (w *Window) transfer(op string, member, disp, n int, near mem.Range, put, nb bool) *Transfer {
	c := w.c
	site := c.Site(op)
	far := Access{Kind: Read, Site: site}
	here := Access{Kind: Write, Site: site}
	if put {
		far.Kind, here.Kind = Write, Read
		far.Done = ByFlush
	}
	if nb {
		here.Done = ByWait
		if !put {
			far.Done = ByWait
		}
	}
	w.Touch(far, member, disp, n)
	spans := c.Near(here, near.Addr(), near.Bytes)
	if !nb {
		return nil
	}
	t := &Transfer{w: w, put: put, site: site, rank: w.shelf.at[member].Rank, near: spans}
	if !put {
		t.far = span{w, member, disp, n}
	}
	if mem.OriginOf(near) != mem.Unknown {
		t.buf = mem.Hidden(near)
	}
	return t
}

// Begun is called when the transfer was made, by the one who returns its handle.
func (t *Transfer) Begun() {
	t.sum = t.digest()
	c := t.w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, t)
}

func (t *Transfer) digest() uint64 {
	if t.buf.Bytes == 0 {
		return 0
	}
	return xxhash.Sum64(t.buf.Data())
}

// flushedAt reports whether a flush of rank is the transfer's end, too.
func (t *Transfer) flushedAt(rank int) bool { return (t.put || t.fetch) && t.rank == rank }

// takeWaits removes the waits for which f is true. The caller holds mu.
func (c *Checker) takeWaits(f func(*Transfer) bool) []*Transfer {
	var out []*Transfer
	c.waits = slices.DeleteFunc(c.waits, func(t *Transfer) bool {
		if f(t) {
			out = append(out, t)
			return true
		}
		return false
	})
	return out
}

// settle ends waits, by call op of the program.
func (c *Checker) settle(ended []*Transfer, op string) {
	for _, t := range ended {
		if t.digest() != t.sum {
			c.changed(t, op)
		}
		if t.learned != nil {
			c.learn(t.learned)
		}
		for _, kind := range []Kind{Read, Write} {
			for _, s := range t.spans(kind) {
				c.done(s, kind, t.site)
			}
		}
	}
}

// spans are the elements of which the transfer is a pending access of that kind.
func (t *Transfer) spans(kind Kind) []span {
	switch {
	case (kind == Read) == t.put:
		return t.near
	case kind == Read && t.far.w != nil:
		return []span{t.far}
	}
	return nil
}

// others are the elements of s of which some transfer that is not waited for yet is a pending access of that kind and site: it and
// those that are done have one cell. The caller holds mu.
func (c *Checker) others(s span, kind Kind, at Site) (out []span) {
	for _, t := range c.waits {
		if t.site != at {
			continue
		}
		for _, o := range t.spans(kind) {
			if o.w == s.w && o.member == s.member && o.disp < s.disp+s.n && s.disp < o.disp+o.n {
				out = append(out, o)
			}
		}
	}
	return out
}

// done makes a pending access of this rank one that is done now, where it is not one of another transfer still.
func (c *Checker) done(s span, kind Kind, at Site) {
	w := s.w
	if c.off.Load() || w.gone.Load() || !w.shelf.lock(s.member) {
		return
	}
	defer w.shelf.unlock(s.member)
	k := width(c.n)
	var buf []uint64
	off := w.cellsAt(s.disp)
	words := w.shelf.words(s.member, off, s.n*k, &buf)
	c.mu.Lock()
	now := c.time.stamp(Access{Kind: kind, Site: at}, w.shelf.at[s.member].Rank)
	open := c.others(s, kind, at)
	c.mu.Unlock()
	was := newCell(0, c.e.Rank, Access{Kind: kind, Done: ByWait, Site: at})
	cells := cellsOf(words)
	for i := range s.n {
		if !slices.ContainsFunc(open, func(o span) bool { return s.disp+i >= o.disp && s.disp+i < o.disp+o.n }) {
			settle(cells[i*k:(i+1)*k], was, now)
		}
	}
	w.shelf.put(s.member, off, words)
}

// changed reports that the program has written to a buffer that was the library's.
func (c *Checker) changed(t *Transfer, op string) {
	begun, ended := c.siteOf(c.e.Rank, t.site), c.siteOf(c.e.Rank, c.Site(op))
	if c.first(begun, ended, "buffer") {
		c.say(fmt.Sprintf("race: rank %d %s: its buffer was written to by the program before the transfer was waited for (%s)",
			c.e.Rank, begun, ended))
	}
}

// Near checks an access of this rank to memory of its own that a call is given: where it is its part of a window, as an
// access to that, else against the buffers of transfers that it has not waited for. It returns what it has touched of
// windows. Of a nil Checker it does nothing.
func (c *Checker) Near(a Access, addr uint64, bytes int) (touched []span) {
	if c == nil || bytes == 0 || c.off.Load() {
		return nil
	}
	var with []*Transfer
	c.mu.Lock()
	for _, w := range c.windows {
		lo, hi := max(addr, w.local.Addr()), min(addr+uint64(bytes), w.local.Addr()+uint64(w.local.Bytes))
		if lo < hi {
			first := int(lo-w.local.Addr()) / w.elem
			behind := (int(hi-w.local.Addr()) + w.elem - 1) / w.elem
			touched = append(touched, span{w, w.me, first, behind - first})
		}
	}
	for _, t := range c.waits {
		if touched == nil && t.buf.Bytes != 0 && addr < t.buf.Addr()+uint64(t.buf.Bytes) && t.buf.Addr() < addr+uint64(bytes) &&
			(!t.put || a.Kind != Read) {
			with = append(with, t)
		}
	}
	c.mu.Unlock()
	for _, s := range touched {
		s.w.Touch(a, s.member, s.disp, s.n)
	}
	for _, t := range with {
		begun, mine := c.siteOf(c.e.Rank, t.site), c.siteOf(c.e.Rank, a.Site)
		if c.first(begun, mine, "buffer") {
			c.say(fmt.Sprintf("race: rank %d %s%s and rank %d %s: they use the same buffer", c.e.Rank, begun, pendingBit.end(), c.e.Rank, mine))
		}
	}
	return touched
}

// Ended is called when the program has waited for the transfer.
func (t *Transfer) Ended() {
	c := t.w.c
	c.enterSeen()
	c.mu.Lock()
	mine := c.takeWaits(func(o *Transfer) bool { return o == t })
	c.mu.Unlock()
	c.settle(mine, "wait")
}
