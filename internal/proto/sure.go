package proto

import (
	"gopgas/internal/mem"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
)

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
