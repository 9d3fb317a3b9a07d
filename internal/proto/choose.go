package proto

import (
	"fmt"
	"strings"

	"gopgas/eager"
	"gopgas/internal/callsite"
	"gopgas/internal/mem"
	"gopgas/internal/prices"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// Bulk forces how large transfers travel whose memory is not registered, or leaves it to the costs. The zero Bulk does that.
type Bulk struct {
	kind   bulkKind
	policy superpipe.Policy
}

type bulkKind uint8

const (
	bulkAuto     bulkKind = iota
	bulkRegister          // as the policy of registration says
	bulkPiped             // never registered
	bulkLeased            // nor is the target's
)

const (
	bulkAutoName     = "auto"
	bulkRegisterName = "register"
	bulkLeaseName    = "lease"
)

// ParseBulk returns what PGAS_BULK calls name; the empty name is auto.
func ParseBulk(name string) (Bulk, error) {
	switch name {
	case "", bulkAutoName:
		return Bulk{}, nil
	case bulkRegisterName:
		return Bulk{kind: bulkRegister}, nil
	case bulkLeaseName:
		return Bulk{kind: bulkLeased}, nil
	}
	p, err := superpipe.ParsePolicy(name)
	if err != nil {
		return Bulk{}, fmt.Errorf("%q: want one of: %s", name, Bulks())
	}
	return Bulk{bulkPiped, p}, nil
}

// Bulks lists the names that ParseBulk knows.
func Bulks() string {
	names := []string{bulkAutoName, bulkRegisterName, bulkLeaseName}
	for p := superpipe.Super; p <= superpipe.PipelinedPins; p++ {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

// choose says how a put or get of the user's memory travels: Direct (t.path says of which kind), Pipe, Hybrid, or Bounce for
// everything that is copied through the pool, goes inline or by message; Lease. waited: for its completion somebody waits anyway.
func (n *nic) choose(t *journey, waited bool, user mem.Range) selector.Protocol {
	if user.Bytes == 0 || t.r.hosed != nil && t.r.Rank == n.e.Rank {
		return selector.Bounce
	}
	switch {
	case n.bulk.how.kind == bulkLeased && user.Bytes >= n.direct.least && n.mayLease(t.r, user):
		return selector.Lease
	case t.r.hosed != nil && n.am != nil && user.Bytes > n.am.MaxPayload() && n.unregistered(t.r):
		return n.chooseUnregistered(t, waited, user)
	}
	p := n.chooseAny(t, waited, user)
	if t.r.hosed != nil && p != selector.Direct {
		return selector.Bounce // a pipe writes by one key; buckets have many
	}
	return p
}

// chooseAny is choose for memory that one key opens.
func (n *nic) chooseAny(t *journey, waited bool, user mem.Range) selector.Protocol {
	get := t.kind == transport.OpRead
	if p, ok := n.forcedChoice(); ok {
		if (p == selector.Pipe || p == selector.Hybrid) && !n.mayPipe(user) {
			return selector.Bounce
		}
		return p
	}
	switch {
	case user.Bytes >= n.direct.least || user.Bytes >= leastLearned && !get && !waited && n.learns():
		return n.chooseLarge(t, waited, user)
	case n.bypasses(t.r, get, waited, user):
		t.path = PathBypass
		return selector.Direct
	default:
		return selector.Bounce
	}
}

// leastLearned is the size in bytes from which what puts cost is worth learning that fit into a slot and for which nobody waits one
// by one: below it asking the clock would be a good part of it. Of others that fit what is measured at the start says enough.
const leastLearned = 16 << 10

// learns reports whether the costs decide of puts that fit into a slot as they do of larger transfers.
func (n *nic) learns() bool {
	return n.bulk.how.kind == bulkAuto && n.small.how.Mode == eager.Auto && n.direct.reg.Policy() == regmgr.LeavePinned &&
		!n.e.Sched.Virtual() && n.prices().Measured
}

// chooseLarge is choose for what is not small, and for smaller transfers of which the costs are learned.
func (n *nic) chooseLarge(t *journey, waited bool, user mem.Range) selector.Protocol {
	b := &n.bulk
	if b.how.kind != bulkAuto || waited {
		n.small.habits.Other()
	}
	if b.how.kind == bulkPiped {
		if n.mayPipe(user) {
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
	q := selector.Query{Bytes: user.Bytes, Get: t.kind == transport.OpRead, Waited: waited}
	var last prices.Run
	if !waited {
		q.Waited, last = n.small.habits.FlushFollows(framesBelow)
	}
	if q.Waited && user.Bytes < n.direct.least {
		if n.small.habits.Frequent(user) {
			t.path = PathBypass
			return selector.Direct
		}
		return selector.Bounce
	}
	if user.Bytes > bulkFold*n.bulkSlot() {
		q.Waited = true // no put of so much returns long before its end: what counts is the wire
	}
	var site callsite.Stack
	callsite.Here(&site, framesBelow)
	foreseen := reg.Returns(site.Hash(), user)
	stays := false
	if q.Covered, stays = reg.Known(user, t.rights()); stays {
		q.Uses = foreseen
	}
	if b.chosen.Load() < enough && b.chosen.Add(1) == enough {
		n.measure(t.r)
	}
	switch p := n.cheapest(t, q, &last); p {
	case selector.Direct, selector.Register:
		return selector.Direct
	case selector.Hybrid, selector.Pipe:
		switch {
		case !n.mayPipe(user):
			return selector.Bounce
		case p == selector.Hybrid && stays && mem.OriginOf(user) == mem.Heap: // its owner may not unmap it meanwhile
			return p
		}
		return selector.Pipe
	}
	return selector.Bounce
}

// cheapest selects by what is estimated and what was learned. last are puts that may not be over.
func (n *nic) cheapest(t *journey, q selector.Query, last *prices.Run) (p selector.Protocol) {
	now := n.prices()
	if n.e.Sched.Virtual() { // nothing can be learned where all costs what a model says
		return selector.Select(q, now.Selector)
	}
	again := false
	if t.blocking {
		p, t.trial, again = last.Again(t.r.Rank, q)
	}
	if !again {
		p, t.trial = now.Learned.Choose(q, now.Selector, t.blocking)
	}
	if t.trial.Wanted() {
		t.begun = n.e.Sched.Now()
	}
	return p
}

// pipes reports whether what could not be registered is to go through a pipe.
func (n *nic) pipes(user mem.Range) bool {
	return n.bulk.how.kind != bulkRegister && n.direct.reg.Policy() == regmgr.LeavePinned && user.Bytes >= n.direct.least &&
		user.Bytes > n.pool.SlotBytes() && n.mayPipe(user)
}

// mayPipe reports whether a pipe can carry memory: it outlives the call, so it must not lie on a stack.
func (n *nic) mayPipe(user mem.Range) bool {
	return n.bulk.origin != nil && mem.OriginOf(user) != mem.Unknown
}
