package pgsync

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
)

// Long data of members that all reach each other through a NIC, or all map each other's memory, goes without outboxes. Each member offers it from where it lies: it tells the
// others address and key of it in a turn; they read what they want of it, all at once and straight to where it belongs; and a last turn says that nobody reads any more. So there
// are two turns whatever the length, and no copies, where outboxes take a turn and two copies for each 256 KiB.
//
// What is offered through a NIC is registered memory, which somebody may not have, or not want to have, for this call (proto.Offer); what is mapped is library memory, a
// window's or an array's (proto.OfferMapped); and Go memory can be read by a copy of the kernel's (proto.OfferPeeked). Who has no such refuses. All see that in the first turn, and the call goes on in outboxes. Of the calls behind that, more and more then go without asking,
// until nobody refuses any more: all members count the same.

// offers is what members have for each other in a call, and what a team knows of calls before. It belongs to whoever has made Team.busy true.
type offers struct {
	refusals int // calls in a row in which somebody refused
	passes   int // so many calls do not ask

	sight    sight
	ballots  []ballot            // of the members, in the present call
	contests map[uint16]*contest // by class of calls

	mine    [mostOffers]proto.Offer
	cards   []uint64       // two words of each offer, by member
	of      []proto.Remote // what the others offer, by member and number
	scratch []uint64       // what a reduction has read of others
	partial []uint64       // what a reduction has got, where that is nobody's result
}

const (
	mostOffers  = 2 // a member has in a call
	mostPassed  = 15
	offerCopies = 1 << 20  // bytes that a reduction reads of others at once,
	leastCopy   = 4 << 10  // and of each of them, at least
	seenCopy    = 32 << 10 // and at most, where members map each other's memory and what is copied stays in the first cache
	mostPartial = 8 << 20  // bytes of a result that a member combines for somebody else, and of one that each of two combines
)

// offering is what a member offers in a call.
type offering struct {
	many int // ranges: the same of each member
	mine [mostOffers]mem.Range
}

// givers are the members that offer something. All members agree on them.
type givers struct {
	from   int              // one member, or everyone
	absent func(m int) bool // who of these has nothing to offer; nil: nobody
}

func (g *givers) include(m int) bool {
	return (g.from == everyone || g.from == m) && (g.absent == nil || !g.absent(m))
}

// offer is the turn in which members tell each other what they offer. Where ok is false somebody refuses, and nothing is offered. Else, and behind an error, ended
// must follow.
func (c *turns) offer(ctx context.Context, what call, o offering, g givers) (ok bool, err error) {
	t, x, n := c.t, &c.t.offers, len(c.t.ranks)
	if x.passes > 0 {
		x.passes--
		for _, r := range o.mine {
			t.e.Foresee(r)
		}
		return false, nil
	}
	if len(x.of) == 0 {
		x.of, x.cards = make([]proto.Remote, mostOffers*n), make([]uint64, 2*mostOffers*(n+1))
	}
	words := 2 * o.many
	card, all := x.cards[:words], x.cards[words:words*(n+1)]
	if t.maps {
		c.fillNear(card, o)
	} else {
		x.fill(t, card, o)
	}
	if err := c.gather(ctx, what, everyone, mem.Of(card).Data(), mem.Of(all).Data()); err != nil {
		return false, err
	}
	if t.maps {
		ok, err = c.learnNear(all, o.many, g)
	} else {
		ok = x.learn(t, all, o.many, g)
	}
	if ok || err != nil {
		x.refusals = 0
		return ok, err
	}
	x.passes = min(1<<x.refusals-1, mostPassed)
	x.refusals = min(x.refusals+1, 8)
	x.withdraw()
	return false, nil
}

// fill puts addresses and keys into this member's card, or nothing where it does not offer all that it has.
func (x *offers) fill(t *Team, card []uint64, o offering) {
	willing := true
	for i := range o.many {
		if o.mine[i].Bytes > 0 {
			willing = t.e.Offer(&x.mine[i], o.mine[i]) && willing // also the second one is noted where the first one is refused
		}
	}
	clear(card)
	for i := 0; willing && i < o.many; i++ {
		card[2*i], card[2*i+1] = x.mine[i].Addr, x.mine[i].Key
	}
}

// learn takes in what all members have told, and reports whether the call goes by offers.
func (x *offers) learn(t *Team, all []uint64, many int, g givers) (ok bool) {
	ok = true
	for m, rank := range t.ranks {
		for i := range many {
			at := 2 * (m*many + i)
			ok = ok && (all[at] != 0 || !g.include(m))
			x.of[m*mostOffers+i] = t.e.Offered(rank, all[at], all[at+1])
		}
	}
	return ok
}

// withdraw ends the offers of a call that nobody reads any more.
func (x *offers) withdraw() {
	for i := range x.mine {
		x.mine[i].Withdraw()
	}
}

// ended ends the offers of a call that has come to its end, or to err. Who leaves before the end gets his memory back while others may be reading it. What they read then
// may be anything, so they must not take the call for done, even if they have all flags: he tells each of them before he goes, whatever they may know by then, and
// all look for that when they have read: at the beginning of the turn behind it. Where he goes because members differ, they know that before.
func (c *turns) ended(err error) error {
	t := c.t
	if err == nil {
		t.offers.withdraw()
		return nil
	}
	word, mine := t.left(c.op)|t.bereft(err), t.local.Word64(abandonWord)
	if !mine.CompareAndSwap(0, word) {
		word = mine.Load() // who left before is the one to be named
	}
	if differ := t.local.Word64(poisonWord).Load(); differ != 0 {
		t.spread(poisonWord, differ) // whoever has told this member may not have told all
	}
	t.spread(abandonWord, word)
	for i := range t.offers.mine {
		t.e.KeepTo(&t.offers.mine[i])
	}
	return err
}

// fetchOffered reads what each other member offers as number i: so many bytes from byte from of it on, to byte to of dst. mutual says that all read of all.
func (c *turns) fetchOffered(i int, mutual bool, dst mem.Range, of func(m int) (from, to, bytes int)) error {
	t, n := c.t, len(c.t.ranks)
	if t.maps {
		return c.fetchNear(i, dst, of)
	}
	return t.e.FetchRuns(c.op, mutual, n-1, func(k int) proto.Run {
		m := (t.me + 1 + k) % n
		from, to, bytes := of(m)
		return proto.Run{To: &t.offers.of[m*mostOffers+i], Far: from, Near: to, Bytes: bytes}
	}, dst)
}

// mayOffer says whether a call may go by offers, in which a member has so many bytes for others, and outboxes take them in parts of part bytes.
func (c *turns) mayOffer(bytes, part int) bool {
	if c.t.maps {
		return len(c.t.ranks) > 1 && bytes >= leastShared
	}
	return c.t.apart && len(c.t.ranks) > 1 && worthOffering(bytes, part, c.t.pushes)
}

// Offered moves what members have for each other by offers, where that is worth it: the longest has so many bytes, of which outboxes take part in a turn. root alone has
// something, mine, or everyone but for those that absent names; it may be nil. of says what this member wants of each, itself too: so many bytes from byte from of
// what that one has on, to byte to of dst. All members agree on elem, n, root, bytes, part and absent. Where done is false nothing was moved.
func (c *turns) Offered(ctx context.Context, elem, n, root, bytes, part int, absent func(m int) bool, mine, dst mem.Range, of func(m int) (from, to, bytes int)) (done bool, err error) {
	return c.offered(ctx, callOf(c.op, elem, 0, n), root, bytes, part, absent, mine, dst, of)
}

func (c *turns) offered(ctx context.Context, what call, root, bytes, part int, absent func(m int) bool, mine, dst mem.Range, of func(m int) (from, to, bytes int)) (done bool, err error) {
	if !c.mayOffer(bytes, part) {
		return false, nil
	}
	c.compete(what, bytes, root != c.t.me && (root != everyone || dst.Bytes > 0))
	o := offering{many: 1}
	if root == everyone || root == c.t.me {
		o.mine[0] = mine
	}
	ok, err := c.offer(ctx, what, o, givers{root, absent})
	if err != nil {
		return false, c.ended(err)
	} else if !ok {
		return false, nil
	}
	if from, to, n := of(c.t.me); n > 0 {
		if own, place := mine.Slice(from, n), dst.Slice(to, n); own.Addr() != place.Addr() { // else others may be reading it
			mem.Copy(place.Data(), own.Data())
		}
	}
	if err = c.fetchOffered(0, root == everyone, dst, of); err == nil {
		err = c.turn(ctx, what, max(root, 0), visitor{})
	}
	return true, c.ended(err)
}

// offered is a reduction by offers: each member reads a part of what all others have, combines it, and offers that, of which whoever wants the result reads all. Of two members
// each may combine all (file offer_pair.go).
func (r *reduction) offered(ctx context.Context, part int, dst, src mem.Range) (done bool, err error) {
	c, x := r.c, &r.c.t.offers
	switch {
	case !c.mayOffer(src.Bytes, part):
		return false, nil
	case r.asPair(src.Bytes):
		return r.offeredAsPair(ctx, dst, src)
	}
	n, width := len(c.t.ranks), r.elem.Bytes
	if r.root != everyone && (c.t.maps || src.Bytes/n > mostPartial) {
		return false, nil // a team keeps that memory, which others have not mapped
	}
	c.compete(r.what, src.Bytes, true)
	stretch := func(m int) (at, bytes int) {
		lo, hi := segment(src.Bytes/width, n, m)
		return lo * width, (hi - lo) * width
	}
	at, bytes := stretch(c.t.me)
	sum := dst
	if r.want {
		sum = dst.Slice(at, bytes)
	} else {
		sum = wordsFor(&x.partial, bytes)
	}
	ok, err := c.offer(ctx, r.what, offering{many: 2, mine: [mostOffers]mem.Range{src, sum}}, givers{from: everyone})
	if ok && err == nil {
		if err = r.combineOffered(sum, src.Slice(at, bytes), at); err == nil {
			err = c.turn(ctx, r.what, max(r.root, 0), visitor{})
		}
		if err == nil && r.want {
			err = c.fetchOffered(1, r.root == everyone, dst, func(m int) (from, to, bytes int) {
				to, bytes = stretch(m)
				return 0, to, bytes
			})
		}
		if err == nil {
			err = c.turn(ctx, r.what, max(r.root, 0), visitor{})
		}
	}
	if ok || err != nil {
		err = c.ended(err)
	}
	return ok, err
}

// combineOffered makes sum the combination of own, this member's, and of what the others offer from byte at on, in the order of ranks.
func (r *reduction) combineOffered(sum, own mem.Range, at int) error {
	look, step := r.c.fetchOthers, max(offerCopies/(len(r.c.t.ranks)-1), leastCopy)&^63
	if r.c.t.maps {
		look, step = r.c.seeOthers, min(step, seenCopy)
	}
	for lo := 0; lo < own.Bytes; lo += step {
		bytes := min(step, own.Bytes-lo)
		of, err := look(at+lo, bytes)
		if err != nil {
			return err
		}
		r.inOrder(sum.Slice(lo, bytes), own.Slice(lo, bytes), of)
	}
	return nil
}

// fetchOthers reads so many bytes from byte at on of what each other member offers, and returns where they are.
func (c *turns) fetchOthers(at, bytes int) (of func(m int) mem.Range, err error) {
	step := (bytes + 63) &^ 63
	theirs := wordsFor(&c.t.offers.scratch, (len(c.t.ranks)-1)*step)
	place := func(m int) int { // of a member other than this one
		if m > c.t.me {
			m--
		}
		return m * step
	}
	err = c.fetchOffered(0, true, theirs, func(m int) (from, to, n int) { return at, place(m), bytes })
	return func(m int) mem.Range { return theirs.Slice(place(m), bytes) }, err
}

// inOrder makes sum, which may be own, the combination of own and of what of gives of the others, of whom it may change the first.
func (r *reduction) inOrder(sum, own mem.Range, of func(m int) mem.Range) {
	me, all := r.c.t.me, sum
	switch {
	case me > 0:
		all = of(0)
	case sum.Addr() != own.Addr():
		mem.Copy(sum.Data(), own.Data())
	}
	for m := 1; m < len(r.c.t.ranks); m++ {
		if m == me {
			r.fold(all, own)
		} else {
			r.fold(all, of(m))
		}
	}
	if me > 0 {
		mem.Copy(sum.Data(), all.Data())
	}
}
