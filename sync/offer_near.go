package pgsync

import (
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
)

// Offers of members that map each other's memory: of library memory, which all have mapped, or of the Go heap, at which they peek.

// What a member tells of such an offer are two words: the address, with what it knows of the contest above it; and where the part begins that all have mapped, which is a page, with
// bits below it.
const (
	addrBits = 48
	peekBit  = 1 << 0 // the memory is not mapped, but can be read where it lies
	blindBit = 1 << 1 // this member cannot read others' memory so
	tryBits  = 2      // the way to be tried
	pageBits = 12
)

// sight is whether a member can peek at all others.
type sight uint8

const (
	unknown sight = iota
	sees
	blind
)

// tell writes this member's ballot, and whether it is blind, into its first offer.
func (b ballot) tell(card []uint64, isBlind bool) {
	card[0] |= uint64(b.took[boxed])<<addrBits | uint64(b.took[peeked])<<(addrBits+8)
	card[1] |= uint64(b.try) << tryBits
	if isBlind {
		card[1] |= blindBit
	}
}

// heard is what a member has told of its first offer.
func heard(card []uint64) (b ballot, isBlind bool) {
	b.took[boxed], b.took[peeked] = uint8(card[0]>>addrBits), uint8(card[0]>>(addrBits+8))
	b.try = way(card[1]>>tryBits&3) % ways
	return b, card[1]&blindBit != 0
}

// fillNear is fill where members map each other's memory.
func (c *turns) fillNear(card []uint64, o offering) {
	x, willing := &c.t.offers, true
	for i := range o.many {
		willing = c.showNear(&x.mine[i], o.mine[i], card[2*i:]) && willing
	}
	if !willing {
		clear(card)
	}
	if x.sight == unknown {
		x.sight = sees
		if c.t.e.Peeks(c.t.peers) != nil {
			x.sight = blind
		}
	}
	c.ballot().tell(card, x.sight == blind)
}

// showNear has o offer r and tells how in two words, or reports that it does not.
func (c *turns) showNear(o *proto.Offer, r mem.Range, card []uint64) bool {
	card[0], card[1] = 0, 0
	switch e := c.t.e; {
	case r.Bytes == 0:
		return true
	case r.Addr()>>addrBits != 0:
		return false
	case e.OfferMapped(o, r, c.t.ranks):
		if card[1] = o.Key; o.Key&(1<<pageBits-1) != 0 {
			return false // no mapper makes such memory
		}
	case e.OfferPeeked(o, r):
		card[1] = peekBit
	default:
		return false
	}
	card[0] = o.Addr
	return true
}

// learnNear takes in what all members have told, and reports whether the call goes by offers.
func (c *turns) learnNear(all []uint64, many int, g givers) (ok bool, err error) {
	t, x, n := c.t, &c.t.offers, len(c.t.ranks)
	words := 2 * many
	ok = true
	peeks, dark := false, false
	x.ballots = x.ballots[:0]
	for m := range n {
		card := all[m*words:][:words]
		b, cannot := heard(card)
		x.ballots, dark = append(x.ballots, b), dark || cannot
		for i := range many {
			addr, key := card[2*i]&(1<<addrBits-1), card[2*i+1]
			switch {
			case addr == 0:
				ok = ok && !g.include(m)
			case key&peekBit != 0:
				peeks = true
				x.of[m*mostOffers+i] = t.e.OfferedPeeked(t.ranks[m], addr)
			case m != t.me:
				known := false
				if x.of[m*mostOffers+i], known = t.e.OfferedMapped(t.ranks[m], addr, key&^(1<<pageBits-1)); !known {
					return false, c.Mismatch(m, fmt.Sprintf("rank %d offers memory that this rank has not mapped", t.ranks[m]))
				}
			}
		}
	}
	switch {
	case !ok || !peeks:
		c.contest = nil
	case dark:
		ok = false
	case c.contest != nil && verdict(x.ballots) == boxed:
		ok = false
	default:
		c.went = peeked
	}
	return ok, nil
}

// fetchNear is fetchOffered where members map each other's memory: one after the other.
func (c *turns) fetchNear(i int, dst mem.Range, of func(m int) (from, to, bytes int)) error {
	n := len(c.t.ranks)
	for k := range n - 1 {
		m := (c.t.me + 1 + k) % n
		if from, to, bytes := of(m); bytes > 0 {
			if err := c.lookAt(m, i, from, dst.Slice(to, bytes)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAt copies from byte from of what member m offers as number i to dst. Memory of who has left may be none by now.
func (c *turns) lookAt(m, i, from int, dst mem.Range) error {
	t := c.t
	err := t.e.Fetch(&t.offers.of[m*mostOffers+i], from, dst)
	if err == nil {
		return nil
	}
	if why := (*together)(t).Interrupted(); why != nil {
		err = why
	}
	return t.waitError(c.op, t.ranks[m], err)
}

// seeOthers is fetchOthers where members map each other's memory: what is mapped and need not be changed is not copied.
func (c *turns) seeOthers(at, bytes int) (of func(m int) mem.Range, err error) {
	x, n := &c.t.offers, len(c.t.ranks)
	step, last := (bytes+63)&^63, 0
	copied := func(m int) bool { return m == 0 || m != c.t.me && x.of[m*mostOffers].Mapped.Bytes == 0 }
	for m := range n {
		if copied(m) {
			last = m
		}
	}
	copies := wordsFor(&x.scratch, (last+1)*step)
	own := func(m int) mem.Range { return copies.Slice(m*step, bytes) }
	for m := range n {
		if m != c.t.me && copied(m) {
			if err := c.lookAt(m, 0, at, own(m)); err != nil {
				return nil, err
			}
		}
	}
	return func(m int) mem.Range {
		if copied(m) {
			return own(m)
		}
		return x.of[m*mostOffers].Mapped.Slice(at, bytes)
	}, nil
}
