package proto

import (
	"gopgas/eager"
	"gopgas/internal/callsite"
	"gopgas/internal/flight"
	"gopgas/internal/mem"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/regmgr"
	"gopgas/transport"
)

// choose says how a put or get of the user's memory travels: Direct (t.path says of which kind), Pipe, Hybrid, or Bounce for
// everything that is copied through the pool, goes inline or by message; Lease. waited: for its completion somebody waits anyway.
func (n *device) choose(t *journey, waited bool, user mem.Range) selector.Protocol {
	if user.Bytes == 0 || t.r.hosed != nil && t.r.Rank == n.e.Rank {
		return selector.Bounce
	}
	switch {
	case user.Bytes >= n.direct.least && !t.r.offered && n.leaseForced() && n.mayLeaseAsForced(t.r, user):
		return selector.Lease
	case t.r.hosed != nil && n.Payload != 0 && user.Bytes > n.Payload && n.unregistered(t.r):
		if p := n.chooseUnregistered(t, waited, user); p != selector.Bounce {
			return p
		}
		return n.chooseMessages(t, waited, user)
	case t.r.hosed != nil && t.r.hosed.Bare() && user.Bytes <= n.Slot:
		return n.chooseMessages(t, waited, user)
	}
	return n.chooseAny(t, waited, user)
}

// chooseMessages is choose for what goes by message, whose payload the NIC may gather from the user's memory.
func (n *device) chooseMessages(t *journey, waited bool, user mem.Range) selector.Protocol {
	if t.kind == transport.OpWrite && user.Bytes <= n.Slot && n.gathers(waited, user) {
		t.path = PathGather
		return selector.Direct
	}
	return selector.Bounce
}

// chooseAny is choose for memory that its owner's NIC reaches, as a whole or bucket by bucket.
func (n *device) chooseAny(t *journey, waited bool, user mem.Range) selector.Protocol {
	get := t.kind == transport.OpRead
	if p, ok := n.forcedChoice(); ok {
		if (p == selector.Pipe || p == selector.Hybrid) && !n.mayPipeTo(t, user) {
			return selector.Bounce
		}
		return p
	}
	middling := user.Bytes >= leastLearned && !get && !waited
	if middling && user.Bytes < n.direct.least {
		if p := n.goesOn(t, user); p != selector.None {
			return p
		}
	}
	switch {
	case user.Bytes >= n.direct.least || middling && n.learns():
		return n.chooseLarge(t, waited, user)
	case n.bypasses(t, waited, user):
		t.path = PathBypass
		return selector.Direct
	default:
		return selector.Bounce
	}
}

// leastLearned is the size in bytes from which what puts cost is worth learning that fit into a slot and for which nobody waits one
// by one: below it asking the clock would be a good part of it. Of others that fit what is measured at the start says enough.
const leastLearned = prices.AskedFrom

// learns reports whether the costs decide of puts that fit into a slot as they do of larger transfers.
func (n *device) learns() bool {
	return n.bulk.how.kind == bulkAuto && n.small.how.Mode == eager.Auto && n.direct.reg.Policy() == regmgr.LeavePinned &&
		!n.e.Sched.Virtual() && n.prices().Measured
}

// chooseLarge is choose for what is not small, and for smaller transfers of which the costs are learned.
func (n *device) chooseLarge(t *journey, waited bool, user mem.Range) selector.Protocol {
	b := &n.bulk
	if b.how.kind != bulkAuto || waited {
		n.small.habits.Other()
	}
	if b.how.kind == bulkPiped {
		if n.mayPipeAsForced(t, user) {
			return selector.Pipe
		}
		return selector.Bounce
	}
	reg := n.direct.reg
	if b.how.kind == bulkRegister || reg.Policy() != regmgr.LeavePinned {
		if reg.Plan(user.Bytes).Register {
			return selector.Direct
		}
		return selector.Bounce
	}
	if user.Bytes < n.direct.least {
		return n.chooseMiddling(t, user)
	}
	return n.chooseByCosts(t, waited, user)
}

// chooseByCosts is chooseLarge where nothing is forced.
func (n *device) chooseByCosts(t *journey, waited bool, user mem.Range) selector.Protocol {
	if n.passes(t, user) {
		return selector.Bounce
	}
	q := n.query(t, waited, user)
	asked := q // as what it is asked about
	covered, stays := n.direct.reg.Known(user, t.rights())
	sure, stands := n.unasked(t, covered, asked, false)
	if sure {
		return selector.Direct
	}
	var stack callsite.Stack
	callsite.Here(&stack, framesBelow)
	site, follows := stack.Hash(), false
	var last prices.Run
	if !waited {
		follows, _, last = n.small.habits.FlushFollows(site, user.Bytes)
		q.Waited = q.Waited || follows
		if follows && stands == 1 { // of what is waited for something else may be sure
			asked.Waited = true
			if sure, stands = n.unasked(t, covered, asked, true); sure {
				return selector.Direct
			}
		}
	}
	q.Covered = covered
	if !n.foresee(t, &q, user, n.direct.reg.Returns(site, user, covered, stands), stays) {
		return selector.Bounce
	}
	p, again := n.cheapest(t, q, &last)
	if t.blocking && !n.e.Sched.Virtual() {
		n.small.habits.Passed(q.Get, user.Bytes, p, covered || q.Uses > 1 || !q.Get && !follows)
	}
	if stands > 1 && !again {
		n.prices().Asked(transferOf(asked), user.Bytes, p == selector.Direct)
	}
	return p
}

// chooseMiddling is chooseByCosts for a put that fits into a slot and for which nobody waits.
func (n *device) chooseMiddling(t *journey, user mem.Range) selector.Protocol {
	reg, h := n.direct.reg, &n.small.habits
	var stack callsite.Stack
	callsite.Here(&stack, framesBelow)
	site := stack.Hash()
	if h.Awaiting() { // else there is none that it could be like
		if p, ok := n.alike(t, site, user.Bytes, reg.Hot(user, t.rights())); ok {
			return p
		}
	}
	switch follows, slotted, last := h.FlushFollows(site, user.Bytes); {
	case !follows:
		q := n.query(t, false, user)
		covered, stays := reg.Known(user, t.rights())
		q.Covered = covered
		if !n.foresee(t, &q, user, reg.Returns(site, user, covered, 1), stays) {
			return selector.Bounce
		}
		p, _ := n.cheapest(t, q, &last)
		return p
	case !slotted && (reg.Hot(user, t.rights()) && h.Pays(false, user.Bytes) || h.Frequent(site, user)):
		h.GoOn(selector.Direct, user.Bytes)
		t.path = PathBypass
		return selector.Direct
	}
	return selector.Bounce
}

// query is what is asked of the costs before anything is known of the memory.
func (n *device) query(t *journey, waited bool, user mem.Range) selector.Query {
	q := selector.Query{Bytes: user.Bytes, Get: t.kind == transport.OpRead, Waited: waited}
	if user.Bytes > flight.Fold*n.flights.SlotBytes() {
		q.Waited = true // no put of so much returns long before its end: what counts is the wire
	}
	return q
}

// foresee adds to a query how often its memory is thought to return, if registrations of it stay, and what can carry it. It reports false where it may lie on a
// stack: then it is neither registered nor looked at later.
func (n *device) foresee(t *journey, q *selector.Query, user mem.Range, uses uint8, stays bool) bool {
	if stays {
		q.Uses = uses
	}
	q.NoPipe, q.NoTail = !n.flights.Pipes(), true // of what is registered, which lies on no stack, nothing is left to a hybrid
	if !q.Covered {
		origin := mem.OriginOf(user)
		if origin == mem.Unknown {
			return false
		}
		q.NoTail = !stays || origin != mem.Heap // whose owner might unmap it meanwhile
	}
	if t.r.hosed != nil {
		moves, stretch := n.moves(t, user.Bytes)
		q.Moves, q.NoPipe = uint8(moves), q.NoPipe || stretch == 0
	}
	return true
}

// cheapest selects by what is estimated and what was learned, as choose returns it. last are puts that may not be over, as one of which it travels if again.
func (n *device) cheapest(t *journey, q selector.Query, last *prices.Run) (p selector.Protocol, again bool) {
	n.occasion(t.r)
	now := n.prices()
	if n.e.Sched.Virtual() { // nothing can be learned where all costs what a model says
		return plainly(selector.Select(q, now.Selector)), false
	}
	learned := now.Learned(n.e.kindOf(t.r))
	noted := t.blocking && (q.Get || n.small.habits.Begun())
	if noted {
		p, t.trial, again = last.Again(learned, t.r.Rank, q)
	}
	if !again {
		p, t.trial = learned.Choose(q, now.Selector, noted)
	}
	if t.trial.Wanted() {
		t.begun = n.e.Sched.Now()
	}
	return plainly(p), again
}

// plainly is how a transfer goes for which a selector has chosen: what registers first is direct, and all that is copied at once goes through slots.
func plainly(p selector.Protocol) selector.Protocol {
	switch p {
	case selector.Direct, selector.Register:
		return selector.Direct
	case selector.Hybrid, selector.Pipe:
		return p
	}
	return selector.Bounce
}

// learned is where what transfers with a member cost is learned.
func (n *device) learned(r *Remote) *selector.Learned { return n.prices().Learned(n.e.kindOf(r)) }

// kindOf is what kind of peer a member is for what its transfers cost.
func (e *Engine) kindOf(r *Remote) prices.Peer {
	k := prices.Far
	switch {
	case r.Rank == e.Rank:
		k = prices.Self
	case len(e.Nodes) == e.Size && e.Nodes[r.Rank] == e.Nodes[e.Rank]:
		k = prices.Node
	}
	if r.hosed != nil {
		k += prices.Buckets
	}
	return k
}

// pipes reports whether part, from byte at of the user's memory on, which could not be registered, is to go through a pipe.
func (n *device) pipes(t *journey, at int, part mem.Range) bool {
	rest := *t
	rest.off += at
	return n.bulk.how.kind != bulkRegister && n.direct.reg.Policy() == regmgr.LeavePinned && part.Bytes >= n.direct.least &&
		part.Bytes > n.Slot && n.mayPipeTo(&rest, part)
}

// mayPipe reports whether a pipe can carry memory: it outlives the call, so it must not lie on a stack.
func (n *device) mayPipe(user mem.Range) bool {
	return n.flights.Pipes() && mem.OriginOf(user) != mem.Unknown
}

// mayPipeTo is mayPipe to or from a member's memory.
func (n *device) mayPipeTo(t *journey, user mem.Range) bool {
	return n.mayPipe(user) && n.pipesReach(t, user.Bytes)
}

// pipesReach reports whether pipes reach a member's memory: registered as a whole, or by buckets of which enough are given at once.
func (n *device) pipesReach(t *journey, bytes int) bool {
	if t.r.hosed == nil {
		return true
	}
	_, stretch := n.moves(t, bytes)
	return stretch > 0
}

// moves returns for how many moves of buckets a transfer of so many bytes would wait, counted up to some, and how many of its bytes a
// pipe would carry at once; 0: none, since so few buckets are given together that it would end before its chunks have grown.
func (n *device) moves(t *journey, bytes int) (moves, stretch int) {
	if t.r.Rank == n.e.Rank {
		return 0, 0 // the budget is for others
	}
	moves, stretch = n.hoses.Moves(t.r.hosed, t.r.raddr+uint64(t.off), bytes)
	if stretch < min(bytes, n.flights.SlotBytes()) {
		stretch = 0
	}
	return moves, stretch
}
