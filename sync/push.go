package pgsync

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
)

// What is more than a slip, few members push to each other over a NIC: into the other's outbox of the coming turn, in which each has a place of its own, an inbox.
// The flag goes behind it on the same way, so a turn takes as long as a message does, where reading takes a barrier and a round trip. What was in that
// outbox two turns ago has been read by all who have come to the barrier of the last one, and its owner writes nothing there in such a turn.

// inbox is the size of each.
func (c *turns) inbox() int { return c.Payload() / (len(c.t.ranks) - 1) &^ 7 }

// part is how many bytes of each member a turn moves at most, as a call is carried out.
func (c *turns) part(how method) int {
	if how == handed {
		return c.inbox()
	}
	return c.Payload()
}

// placeOf is where in an outbox the inbox for what one member pushes to another begins.
func (c *turns) placeOf(from, to int) int {
	n := len(c.t.ranks)
	return (from - to - 1 + n) % n * c.inbox()
}

// pushed is hand of what is pushed, of as many bytes as there are, to member only, or everyone. All members agree on root, and that it is pushed.
func (c *turns) pushed(ctx context.Context, what call, root, only int, from mem.Range, bytes, every int) error {
	t, box := c.t, c.coming()
	var under [mostAtOnce]proto.Handle // what is read from where it lies
	var err error
	if c.wide { // so long that the others' part comes while this one's is posted
		t.e.Hush(sched.Steadily)
		defer t.e.Hush(sched.NoMore)
	}
	for i := 1; i < len(t.ranks) && from.Bytes > 0 && err == nil; i++ {
		if m := (t.me + i) % len(t.ranks); only == everyone || only == m {
			under[i], err = t.e.PutAhead(c.op, c.peer(m), box+c.placeOf(t.me, m), from.Slice(m*every, bytes))
		}
	}
	if err == nil {
		err = c.handOver(ctx, what, root, slip{some: from.Bytes > 0, pushed: true})
	}
	for i := range under {
		if werr := under[i].Wait(context.Background()); err == nil { // also behind an error: from is the caller's again on return
			err = werr
		}
	}
	return err
}
