package pgsync

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/shape"
)

// A gather is a turn in which every member gets a slot of bytes from every member in log2 n steps (Bruck et al. 1997),
// on the rounds of the barrier that the turn is made of. A member's outbox begins with its own slot; behind it come
// those of the members before it, in descending order. After round k it holds 2^(k+1) of them: its own 2^k, and as many
// that it has read from the member 2^k before it. What has been written is not changed any more, so a late reader
// finds it. A gather to one member leaves out the reads that do not lead there.
//
// Where the barrier has levels, the members of a node gather among themselves first; then their first members do, with a
// node's slots in place of a member's; then the rest of a node read what its first member has got.

// largestSlot bounds what one gather moves for each member. More would be read by nobody who could not read it from
// its owner at once.
const largestSlot = 512

// leastSlot is the smallest slot there may be: the outboxes grow with the team so that one gather has room for it.
const leastSlot = 32

// slotBytes is the slot for which the outboxes of a team of n have room.
func slotBytes(n int) int { return min(boxPayload(n)/n&^7, largestSlot) }

// Gather gives every member's mine, of equal lengths that Slot allows, to all: member m's is all[m*len(mine):]. It is a
// turn; the members agree on elem, detail and n.
func (c *turns) Gather(ctx context.Context, elem, detail, n int, mine, all []byte) error {
	return c.gather(ctx, callOf(c.op, elem, detail, n), everyone, mine, all)
}

// GatherTo is Gather to root alone; all is not looked at elsewhere. The slots go along a binomial tree: a member reads only what root gets
// by way of it.
func (c *turns) GatherTo(ctx context.Context, elem, detail, n, root int, mine, all []byte) error {
	return c.gather(ctx, callOf(c.op, elem, detail, n), root, mine, all)
}

// Circle is how many take part in the rounds in which a gather reads from other nodes: all members, or of each node one.
func (c *turns) Circle() int { return circle(&c.t.shape) }

func (c *turns) gather(ctx context.Context, what call, root int, mine, all []byte) error {
	t, n, s := c.t, len(c.t.ranks), len(mine)
	if c.slim(s, false) {
		return c.gatherSlips(ctx, what, root, mem.Of(mine), mem.Of(all))
	}
	slots := c.Box(0, n*s)
	copy(slots.Data(), mine)
	v := visitor{heard: func(p *shape.Phase, from, dist int) error {
		most := t.shape.Toward(p, root, dist)
		if most == 0 {
			return nil
		}
		at, many := t.shape.Gathered(p, dist, most)
		return c.fetch(from, 0, at*s, many*s)
	}}
	if err := c.turn(ctx, what, max(root, 0), v); err != nil || root != everyone && root != t.me {
		return err
	}
	if leader := t.shape.Leader(); t.shape.Levels() && leader != t.me {
		if err := c.Read(leader, 0, slots); err != nil {
			return err
		}
	}
	have := slots.Data()
	for i, m := range t.shape.Order(t.me) {
		copy(all[m*s:(m+1)*s], have[i*s:])
	}
	return nil
}
