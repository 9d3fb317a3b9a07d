package proto

import (
	"gopgas/internal/mem"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/transport"
)

// Out of the cold, to ask how a transfer is to go takes some tenths of its time: call sites, registrations, uses and costs lie in some dozens of lines. So most
// are not asked about, and one in some of each kind is all the same, so that what has changed is seen:
//
//	registered at both ends, no other way pays    direct                             unasked, surelyOn
//	16 to 64 KiB, registered, waited for          past the slots                     surely
//	16 to 64 KiB, used once, waited for           through a slot                     Habits.Bypasses
//	16 to 64 KiB, a flush follows                 as the last that was asked about   goesOn (Habits.GoesOn)
//	16 to 64 KiB, no flush follows                as the others of its run           goesOn (Habits.RunsOn), alike
//	large, used once                              through slots                      passes

// Of toldOf transfers that go direct for sure one is asked about like others, so that what their buffers and call sites are used for is not forgotten:
// as many together as a short trial has, since what was tried for some puts of a run only would tell nothing. The number of all from one such spell to the
// next is a prime: programs use their buffers by turns of other numbers.
const (
	toldOf    = 7
	toldEvery = toldOf*selector.ShortTrial + 1
)

// unasked reports whether a transfer goes direct without being asked about, since both ends are registered and no other way is thought to take less, or
// has been seen to. Else stands says for how many such transfers asking about this one stands: 1, or more where it is one that would otherwise have gone
// unasked. told says that its call site was noted already.
func (n *device) unasked(t *journey, covered bool, q selector.Query, told bool) (sure bool, stands uint8) {
	switch {
	case !covered || t.r.hosed != nil || !n.prices().Surely(transferOf(q), q.Bytes) && !n.learned(t.r).Sure(q):
		return false, 1
	case n.direct.sure.Add(1)%toldEvery >= selector.ShortTrial && n.small.habits.Unasked(!q.Get, t.r.Rank, told):
		n.occasion(t.r)
		return true, 0
	}
	return false, toldOf
}

// surelyOn is unasked for a put that fits into a slot: memory that is registered, as far as that takes no search, goes direct where it was learned that any
// other way takes far longer with the flush behind it.
func (n *device) surelyOn(t *journey, user mem.Range) bool {
	return n.learned(t.r).Sure(selector.Query{Bytes: user.Bytes}) && n.direct.reg.Hot(user, t.rights()) &&
		n.direct.sure.Add(1)%toldEvery >= selector.ShortTrial && n.small.habits.Unasked(true, t.r.Rank, false)
}

// occasion counts a large transfer, of which some have what they cost measured, and what they cost to a member.
func (n *device) occasion(r *Remote) {
	if b := &n.bulk; b.chosen.Load() < enough && b.chosen.Add(1) == enough {
		n.measure()
	}
	n.measureToward(r)
}

// transferOf is which kind of transfer a query is to those that go direct for sure.
func transferOf(q selector.Query) prices.Kind {
	switch {
	case q.Get:
		return prices.Get
	case q.Waited:
		return prices.PutWaited
	}
	return prices.Put
}

// goesOn is how a put that fits into a slot goes without being asked about, as those before it did or as it is sure to: through a slot, or from where it
// lies, which must be registered; None: it is asked about, as it is where the one before, behind which a flush is thought to follow, is under way still.
func (n *device) goesOn(t *journey, user mem.Range) selector.Protocol {
	if t.r.hosed != nil || !t.blocking {
		return selector.None
	}
	h := &n.small.habits
	p, run := h.RunsOn(t.r.Rank, user.Bytes), true
	if p == selector.None {
		p, run = h.GoesOn(user.Bytes), false
	}
	switch {
	case p == selector.None && n.surelyOn(t, user):
		return selector.Direct
	case p == selector.None, !run && n.Pending(t.r.Rank), p == selector.Direct && !n.direct.reg.Hot(user, t.rights()):
		return selector.None
	case run && !h.RunOn(p, t.r.Rank, user.Bytes), !run && !h.GoneOn(p, user.Bytes):
		return selector.None
	}
	switch {
	case p != selector.Direct:
	case run:
		n.direct.sure.Add(1) // it may be one of a spell that is asked about
	default:
		t.path = PathBypass
	}
	return p
}

// passes reports whether a large transfer goes through slots without being asked about, as those before it did. What is registered, as far as that takes no
// search, is asked about, and so is a put behind one that is under way.
func (n *device) passes(t *journey, user mem.Range) bool {
	get := t.kind == transport.OpRead
	return t.r.hosed == nil && t.blocking && (get || !n.Pending(t.r.Rank)) && !n.direct.reg.Hot(user, t.rights()) &&
		n.small.habits.Passes(get, user.Bytes)
}

// alike reports whether a put that fits into a slot, and for which nobody waits, travels as those before it do, without being asked about, and how.
// registered says whether its memory is.
func (n *device) alike(t *journey, site uint64, bytes int, registered bool) (p selector.Protocol, yes bool) {
	if t.r.hosed != nil || !t.blocking {
		return p, false
	}
	return n.small.habits.Alike(n.learned(t.r), t.r.Rank, site, bytes, registered)
}
