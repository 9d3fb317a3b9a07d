package pgsync

import (
	"context"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/shape"
)

// Among few members a few bytes need no outbox: a slip with them lies in the flag's own cache line, before the flag is set, and comes with it. What an outbox
// costs beside the flag are, where members store into each other's memory, two lines more from another core's cache, the word that says which call it is and
// the bytes, each as long on its way as the flag; elsewhere reads of both, while a slip goes with the flag in one post.
//
// Where a NIC is a thread of the rank, which may have to get up for what is put, members read as well: who waits for a read makes it himself.
//
// A line has two slips, which a lane's turns take in turn, as they do its outboxes: who writes into one of them is two turns further, so whoever it is for has been
// through the barrier between, and has read it. (The number of the barrier would not do: a started call ends with one for which nobody waits.)

const (
	slipWords = 2
	slipBytes = 8 * slipWords // of data
	slipRoom  = 8 + slipBytes // with the call that they belong to before them
)

const _ = uint(flagStride - 8 - 2*slipRoom)

// slim says whether a turn in which a member, or one alone, has so many bytes for another is one of handing: by slips, or pushed. All members agree on it.
func (c *turns) slim(bytes int, alone bool) bool {
	return c.t.slips && bytes > 0 && (bytes <= slipBytes || c.t.pushes && bytes <= c.inbox(alone))
}

// slippery says whether slips go along with the flags of a team: it is so small that each member tells all others, and they are alike.
func slippery(s *shape.Shape, alike bool) bool {
	n := len(s.Phases[0].Members)
	return alike && len(s.Phases) == 1 && n <= mostAtOnce && n > 1
}

// slip is what a member hands out in a turn, and the place in which it collects.
type slip struct {
	some, pushed bool      // this member hands out something; it has been pushed, and the slip says no more than which call it is of
	alone        bool      // no other one does
	from         mem.Range // else
	bytes, every int       // what is for member m begins at m*every
	theirs       [slipWords]uint64
}

// Slips is slim for other packages, and Hand and Slip are hand and take.
func (c *turns) Slips(bytes int) bool { return c.slim(bytes, false) }

// Hand hands so many bytes of from to each other member, in a turn of handing: the bytes for member m begin at m*every. An empty range hands out nothing.
func (c *turns) Hand(ctx context.Context, elem, detail, n, root int, from mem.Range, bytes, every int) error {
	return c.handPart(ctx, callOf(c.op, elem, detail, n), root, everyone, parcel{whole: from, part: bytes, every: every, hi: bytes})
}

// HandPart hands bytes lo to hi of the part for each other member, which begins at m*part in from, of which the next as many follow in the next turn. Where there is
// a root it alone has something, and from is empty elsewhere.
func (c *turns) HandPart(ctx context.Context, elem, n, root int, from mem.Range, part, lo, hi int) error {
	p := parcel{whole: from, part: part, every: part, lo: lo, hi: hi, alone: root != everyone}
	return c.handPart(ctx, callOf(c.op, elem, 0, n), root, everyone, p)
}

// handPart is the turn of a parcel, to member only, or everyone.
func (c *turns) handPart(ctx context.Context, what call, root, only int, p parcel) (err error) {
	if p.alone {
		c.heed(root, p.hi, p.part, true)
	} else {
		c.heed(only, p.hi, p.part, false)
	}
	if p.hi-p.lo > slipBytes {
		err = c.pushed(ctx, what, max(root, 0), only, p)
	} else {
		s := slip{some: p.whole.Bytes > 0, every: p.every}
		if s.some {
			s.from, s.bytes = p.whole.Slice(p.lo, p.whole.Bytes-p.lo), p.hi-p.lo
		}
		err = c.handOver(ctx, what, max(root, 0), s)
	}
	c.heeds, c.heeders = all, all
	return err
}

// handOver is the turn in which all is handed.
func (c *turns) handOver(ctx context.Context, what call, root int, s slip) error {
	c.t.slip, c.handing = s, true
	err := c.turn(ctx, what, root, visitor{})
	c.t.slip.some, c.t.slip.from, c.handing = false, mem.Range{}, false
	return err
}

// Slip copies what another member has handed to this one in the present turn.
func (c *turns) Slip(member int, dst mem.Range) error {
	theirs, err := c.handed(member, dst.Bytes)
	if err == nil {
		mem.CopyRange(dst, theirs)
	}
	return err
}

// handed is so many bytes that another member has handed to this one in the present turn, until the next call of this.
func (c *turns) handed(member, bytes int) (theirs mem.Range, err error) {
	t := c.t
	at := c.slipAt(flagAt(c.l, &t.shape.Phases[0], shape.Behind(t.me, member, len(t.ranks))))
	if word := t.local.Word64(at).Load() ^ c.seal(); call(word) != c.call {
		return theirs, c.Mismatch(member, fmt.Sprintf("this rank is in %s, rank %d in another call", c.call, t.ranks[member]))
	}
	if t.slip.pushed {
		t.e.Sched.ChargeCopy(bytes, bytes)
		return c.local().Slice(c.data+c.placeOf(member, t.me, t.slip.alone), bytes), nil
	}
	for i := range t.slip.theirs {
		t.slip.theirs[i] = t.local.Word64(at + 8 + 8*i).Load()
	}
	return mem.Of(t.slip.theirs[:]).Slice(0, bytes), nil
}

// handTo hands bytes lo to hi of mine to root, or everyone.
func (c *turns) handTo(ctx context.Context, what call, root int, mine mem.Range, lo, hi int) error {
	return c.handPart(ctx, what, root, root, parcel{whole: mine, part: mine.Bytes, lo: lo, hi: hi})
}

// gatherSlips gives root, or everyone, each member's mine, all of one length.
func (c *turns) gatherSlips(ctx context.Context, what call, root int, mine, all mem.Range) error {
	if err := c.handTo(ctx, what, root, mine, 0, mine.Bytes); err != nil || root != everyone && root != c.t.me {
		return err
	}
	for m := range c.t.ranks {
		dst := all.Slice(m*mine.Bytes, mine.Bytes)
		if m == c.t.me {
			mem.CopyRange(dst, mine)
		} else if err := c.Slip(m, dst); err != nil {
			return err
		}
	}
	return nil
}

// lay puts what is for member to into the line of the flag that is set next.
func (c *turns) lay(to, line int) error {
	var words [1 + slipWords]uint64
	words[0] = uint64(c.call) ^ c.seal()
	if s := &c.t.slip; !s.pushed {
		copy(mem.Of(words[1:]).Data(), s.from.Slice(to*s.every, s.bytes).Data())
	}
	return c.t.e.StoreWords(&c.t.peers[to], c.slipAt(line), words[:])
}

// slipAt is where in a flag's line the slip of the lane's present turn lies.
func (c *turns) slipAt(line int) int { return line + 8 + int(c.l.round&1)*slipRoom }

// seal makes what an earlier turn of the same call has left in a line another word than this turn's.
func (c *turns) seal() uint64 { return c.l.gen * sumMul }
