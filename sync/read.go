package pgsync

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
)

// What a member reads of the others' outboxes, it reads with the word that says which call they are in. Through a NIC each is a round trip, so short pieces of
// many come with the words in one, to a place of the team's own, and what is read of one member is asked for together with its word. Of its own outbox nobody asks a NIC.

const (
	tripBytes = 16 << 10 // of what comes in one trip: longer pieces take so long that another one does not matter
	leastPast = 128      // bytes from which what is read of one member may go past the slots, into the caller's memory
)

// Read copies from byte off of a member's outbox.
func (c *turns) Read(member, off int, dst mem.Range) error {
	t := c.t
	switch {
	case c.own(member, off, dst):
		return nil
	case c.Mapped(member):
		if err := c.check(member); err != nil {
			return err
		}
		return t.e.Fetch(c.peer(member), c.data+off, dst)
	case dst.Bytes < leastPast && !c.wide:
		return c.trip(1, func(int) piece { return piece{member, off, 0, dst.Bytes} }, dst)
	}
	h, err := t.e.GetNB(&t.peers[member], c.off, mem.Of(t.word[:]))
	if err != nil {
		return err
	}
	err = t.e.Fetch(c.peer(member), c.data+off, dst)
	if werr := h.Wait(context.Background()); err == nil {
		err = werr
	}
	if err != nil {
		return err
	}
	return c.same(member, t.word[0])
}

// own is Read of this member's own outbox, if it is that.
func (c *turns) own(member, off int, dst mem.Range) bool {
	if member != c.t.me {
		return false
	}
	mem.Copy(dst.Data(), c.local().Slice(c.data+off, dst.Bytes).Data())
	c.t.e.Sched.ChargeCopy(dst.Bytes, dst.Bytes)
	return true
}

// See is Read without a copy where the member is mapped; elsewhere it reads into buf.
func (c *turns) See(member, off, bytes int, buf mem.Range) (mem.Range, error) {
	if box := c.peer(member).Mapped; box.Bytes != 0 {
		return box.Slice(c.data+off, bytes), c.check(member)
	}
	return buf, c.Read(member, off, buf)
}

// theirCall is where in the header of its own outbox a member keeps what it has read of another's.
const theirCall = 8

// fetch copies n bytes from byte from of another member's outbox to byte to of this one's, in the present turn. Through a NIC the
// call that the other is in comes with them: it takes one round trip.
func (c *turns) fetch(member, from, to, n int) error {
	t := c.t
	if c.Mapped(member) || c.wide {
		return c.Read(member, from, c.local().Slice(c.data+to, n))
	}
	err := t.e.GetRuns(c.op, 2, func(i int) proto.Run {
		if i == 0 {
			return proto.Run{To: &t.peers[member], Far: c.off, Near: c.off + theirCall, Bytes: 8}
		}
		return proto.Run{To: &t.peers[member], Far: c.off + outboxHeader + from, Near: c.off + outboxHeader + to, Bytes: n}
	}, t.local)
	if err != nil {
		return err
	}
	return c.same(member, t.local.Word64(c.off+theirCall).Load())
}

// SeeEach calls f with n bytes from off on of the outboxes of the members of, in their order. What is not mapped is read from all at once
// into buf, which grows to hold it; f's range ends with the call.
func (c *turns) SeeEach(off, n int, of []int, buf *[]byte, f func(member int, theirs mem.Range)) error {
	far := 0
	for _, m := range of {
		if !c.Mapped(m) {
			far++
		}
	}
	if far > 0 {
		stride := (n + 7) &^ 7 // so that elements are aligned
		if len(*buf) < far*stride {
			*buf = make([]byte, far*stride)
		}
		row := make([]int, len(c.t.ranks)) // where a member's bytes go; 0: nowhere, or n behind there
		for _, m := range of {
			if !c.Mapped(m) {
				row[m] = far * stride
				far--
			}
		}
		err := c.ReadAll(mem.Of(*buf), func(m int) (from, to, bytes int) {
			if row[m] == 0 {
				return 0, 0, 0
			}
			return off, row[m] - stride, n
		})
		if err != nil {
			return err
		}
		for _, m := range of {
			theirs := mem.Of(*buf)
			if row[m] > 0 {
				theirs = theirs.Slice(row[m]-stride, n)
			} else if theirs, err = c.See(m, off, n, theirs); err != nil {
				return err
			}
			f(m, theirs)
		}
		return nil
	}
	for _, m := range of {
		theirs, err := c.See(m, off, n, mem.Range{})
		if err != nil {
			return err
		}
		f(m, theirs)
	}
	return nil
}

// Mapped reports whether this rank maps the member's memory.
func (c *turns) Mapped(member int) bool { return c.t.peers[member].Mapped.Bytes != 0 }

// ReadAll reads a piece from every member's outbox, all at once, beginning with the next member's, so that not all
// members read the same one's at the same time. What comes next to each other may travel as one.
func (c *turns) ReadAll(dst mem.Range, of func(member int) (from, to, bytes int)) error {
	n, all, mapped := len(c.t.ranks), 0, false
	for m := range n {
		from, to, bytes := of(m)
		if bytes == 0 || c.own(m, from, dst.Slice(to, bytes)) {
			continue
		}
		all += bytes
		mapped = mapped || c.Mapped(m)
	}
	other := func(i int) (p piece) { // the others, and what is read of them
		p.member = (c.t.me + i + 1) % n
		p.from, p.to, p.bytes = of(p.member)
		return p
	}
	switch {
	case all == 0:
		return nil
	case c.brief(all) && !mapped:
		return c.trip(n-1, other, dst)
	}
	words := make([]uint64, n)
	err := c.t.e.GetRuns(c.op, n-1, func(i int) proto.Run {
		p := other(i)
		return proto.Run{To: &c.t.peers[p.member], Far: c.off, Near: 8 * p.member, Bytes: p.word()}
	}, mem.Of(words))
	if err != nil {
		return err
	}
	for i := range n - 1 {
		if p := other(i); p.bytes > 0 {
			if err := c.same(p.member, words[p.member]); err != nil {
				return err
			}
		}
	}
	return c.t.e.GetRuns(c.op, n-1, func(i int) proto.Run {
		p := other(i)
		return proto.Run{To: c.peer(p.member), Far: c.data + p.from, Near: p.to, Bytes: p.bytes}
	}, dst)
}

// place is so many bytes of the team's own, for the goroutine that is in a call.
func (t *Team) place(bytes int) mem.Range { return wordsFor(&t.trip, bytes) }

// wordsFor is so many bytes of words, which grow to hold them.
func wordsFor(words *[]uint64, bytes int) mem.Range {
	if n := (bytes + 7) / 8; len(*words) < n {
		*words = make([]uint64, n)
	}
	return mem.Of(*words).Slice(0, bytes)
}

// piece is what is read of a member's outbox: from where there, to where here.
type piece struct{ member, from, to, bytes int }

// word is how many bytes of the word are read that comes with it.
func (p piece) word() int {
	if p.bytes == 0 {
		return 0
	}
	return 8
}

// brief says whether pieces of so many bytes together come in a trip.
func (c *turns) brief(bytes int) bool { return bytes <= tripBytes && !c.wide }

// trip reads n pieces, of members that are not mapped, into dst, and which calls they are in.
func (c *turns) trip(n int, of func(i int) piece, dst mem.Range) error {
	t, at := c.t, make([]int, n+1) // where the pieces land, behind the calls
	at[0] = 8 * n
	for i := range n {
		at[i+1] = at[i] + (of(i).bytes+7)&^7
	}
	landed := t.place(at[n])
	err := t.e.GetRuns(c.op, 2*n, func(k int) proto.Run {
		i := k / 2
		p := of(i)
		if k%2 == 0 {
			return proto.Run{To: &t.peers[p.member], Far: c.off, Near: 8 * i, Bytes: p.word()}
		}
		return proto.Run{To: &t.peers[p.member], Far: c.data + p.from, Near: at[i], Bytes: p.bytes}
	}, landed)
	if err != nil {
		return err
	}
	for i := range n {
		p := of(i)
		if p.bytes == 0 {
			continue
		}
		if err := c.same(p.member, landed.Word64(8*i).Load()); err != nil {
			return err
		}
		mem.Copy(dst.Slice(p.to, p.bytes).Data(), landed.Slice(at[i], p.bytes).Data())
		t.e.Sched.ChargeCopy(p.bytes, p.bytes)
	}
	return nil
}
