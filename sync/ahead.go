package pgsync

import (
	"context"
	"math/bits"

	"gopgas/internal/mem"
)

// Who needs nothing from another member in a turn does not wait for that one, where each member tells all others: the root of a short broadcast or scatter waits for nobody, and
// the others for it alone; of a short reduction or gather the root waits for all, and the others for nobody. They go ahead when they have told the others. That they have not
// heard from all is a debt, for which they keep the lane. It is paid before anything else begins there, four calls later, so that nobody is further ahead than that and what the others
// have not read yet is not overwritten (Y8); and in the next barrier of the team in which all are heard, at its end: by then the others have made this call as well, so nobody waits
// for it. Members that differ find out there at the latest.

// heed is whom a turn waits for: all, nobody, or one member.
type heed int

const (
	all    heed = 0
	nobody heed = -1
)

// only is heed of one member.
func only(member int) heed { return heed(member + 1) }

// heed has this member wait for those whose bytes it needs in a turn that moves bytes up to hi of so many, from the root to all others, or from them to it, and know who waits
// for it. Only the last part of a call goes ahead: parts set out when all have met. The room is all lanes', so who has written to it waits. A view has its lane for one call, and ends on it in order.
func (c *turns) heed(root, hi, bytes int, fromRoot bool) {
	c.heeds, c.heeders = all, all
	if root == everyone || c.t.lane != nil || c.wide || hi < bytes || !c.t.slips {
		return
	}
	needs, needed := &c.heeds, &c.heeders // of the root, where the others need it
	if !fromRoot {
		needs, needed = needed, needs
	}
	if c.t.me == root {
		*needs = nobody
	} else {
		*needs, *needed = only(root), nobody
	}
}

// awaited reports whether a member waits for this one in the present turn. Another one need not hear from it before it pays its debts.
func (c *turns) awaited(member int) bool { return c.heeders == all || c.heeders == only(member) }

// TurnFrom is a Turn behind which all others read from the root alone, up to hi of so many bytes; TurnTo one behind which the root alone reads.
func (c *turns) TurnFrom(ctx context.Context, elem, n, root, hi, bytes int) error {
	return c.rootedTurn(ctx, callOf(c.op, elem, 0, n), root, hi, bytes, true)
}

// TurnTo is the other half of TurnFrom.
func (c *turns) TurnTo(ctx context.Context, elem, n, root, hi, bytes int) error {
	return c.rootedTurn(ctx, callOf(c.op, elem, 0, n), root, hi, bytes, false)
}

func (c *turns) rootedTurn(ctx context.Context, what call, root, hi, bytes int, fromRoot bool) error {
	if crowded(&c.t.shape.Phases[0]) {
		c.heed(root, hi, bytes, fromRoot)
	}
	err := c.turn(ctx, what, root, visitor{})
	c.heeds, c.heeders = all, all
	return err
}

// debts are the lanes' whose calls this team has gone ahead in, and keeps until they are paid. They are whose goroutine made Team.busy true.
type debts struct {
	lanes uint32 // a bit for each
	of    [laneCount]debt
}

// on reports whether there is one on a lane.
func (d *debts) on(l *lane) bool { return d.lanes>>l.number&1 != 0 }

// debt is what tells the barrier of a lane from others.
type debt struct {
	op                      string
	number, ticket, purpose uint64
	call                    call
}

// owe notes that not all have been heard in the lane's barrier. Who has been is behind it all the same.
func (c *turns) owe() {
	if c.heeds > all {
		c.l.board.LeaveWith(int(c.heeds) - 1)
	}
	d := &c.t.debts
	d.of[c.l.number] = debt{c.op, c.number, c.ticket, c.purpose, c.call}
	d.lanes |= 1 << c.l.number
	mem.Publish32(&c.l.kept, 1)
}

// pay hears from all in the calls that this member has gone ahead in, on one lane, and lets its next call use it.
func (t *Team) pay(ctx context.Context, l *lane) error {
	p, d := &t.shape.Phases[0], &t.debts.of[l.number]
	for dist := 1; dist < len(p.Members); dist++ {
		if flag := t.local.Word64(flagAt(l, p, dist)).Load(); flag>>sumBits > l.gen || flag == l.gen<<sumBits|l.sum {
			continue
		}
		c := turns{t: t, l: l, op: d.op, number: d.number, purpose: d.purpose, call: d.call}
		if _, err := c.hear(ctx, p, dist); err != nil {
			return err
		}
	}
	t.e.Sched.Seen()
	t.debts.lanes &^= 1 << l.number
	mem.Publish32(&l.kept, 0)
	l.free(t, d.ticket)
	return nil
}

// payAll does so on all lanes.
func (t *Team) payAll(ctx context.Context) error {
	for t.debts.lanes != 0 {
		if err := t.pay(ctx, &t.core.lanes[bits.TrailingZeros32(t.debts.lanes)]); err != nil {
			return err
		}
	}
	return nil
}

// payFor pays what keeps a started call from its lane, unless a goroutine is in a collective that is about to.
func (t *Team) payFor(ctx context.Context, l *lane) error {
	if l.kept.Load() == 0 || !t.busy.CompareAndSwap(0, 1) {
		return nil
	}
	defer mem.Publish32(&t.busy, 0)
	if !t.debts.on(l) {
		return nil
	}
	return t.pay(ctx, l)
}
