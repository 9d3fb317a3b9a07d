package pgsync

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
)

// What is more than a slip, few members push to each other over a NIC: into the other's outbox of the coming turn, in which each has a place of its own, an inbox.
// The flag goes behind it on the same way, so a turn takes as long as a message does, where reading takes a barrier and a round trip. What was in that
// outbox two turns ago has been read by all who have come to the barrier of the last one, and its owner writes nothing there in such a turn. So the next part of a long
// call sets out as soon as that barrier is over, and is on its way while what came in the last turn is copied or combined.

// inbox is the size of each. Where one member alone pushes it has the whole outbox.
func (c *turns) inbox(alone bool) int {
	if alone {
		return c.Payload()
	}
	return c.Payload() / (len(c.t.ranks) - 1) &^ 7
}

// Inbox is that where members push, else 0.
func (c *turns) Inbox(alone bool) int {
	if !c.t.slips || !c.t.pushes {
		return 0
	}
	return c.inbox(alone)
}

// part is how many bytes of each member a turn moves at most, as a call is carried out.
func (c *turns) part(how method, alone bool) int {
	if how == handed {
		return c.inbox(alone)
	}
	return c.Payload()
}

// likely is part of a call that goes through the room where it can.
func (c *turns) likely(how method, alone bool) int {
	was := c.wide
	c.wide = c.t.alike && !c.t.room.refused // in a view members are not
	bytes := c.part(how, alone)
	c.wide = was
	return bytes
}

// Part is how many bytes of each member, or of one alone, a turn is likely to move at most.
func (c *turns) Part(alone bool) int {
	if c.t.pushes {
		return c.likely(handed, alone)
	}
	return c.likely(direct, alone)
}

// placeOf is where in an outbox the inbox for what one member pushes to another begins.
func (c *turns) placeOf(from, to int, alone bool) int {
	if alone {
		return 0
	}
	n := len(c.t.ranks)
	return (from - to - 1 + n) % n * c.inbox(false)
}

// parcel is what a member has for the others, and which bytes of it a turn moves: lo to hi of the part for each, which begins at m*every for member m.
type parcel struct {
	whole       mem.Range // empty: it has nothing
	part, every int
	lo, hi      int  // may be beyond the part
	alone       bool // only one member has something
}

// stretch is where the turn's bytes of the part for a member lie.
func (p *parcel) stretch(m int) mem.Range {
	if p.whole.Bytes == 0 {
		return mem.Range{}
	}
	off, n := stretch(m*p.every, m*p.every+p.part, p.lo, p.hi)
	return p.whole.Slice(off, n)
}

// next is the parcel of the turn behind.
func (p parcel) next() parcel {
	p.lo, p.hi = p.hi, 2*p.hi-p.lo
	return p
}

// freight is what sets out to the others, and is read from where it lies.
type freight struct {
	ahead bool // it is of the coming turn
	under [mostAtOnce]proto.Handle
}

// arrive waits until all of it has been read. It is the caller's again on return, also behind an error.
func (f *freight) arrive() (err error) {
	for i := range f.under {
		if werr := f.under[i].Wait(context.Background()); err == nil {
			err = werr
		}
	}
	return err
}

// failed is the error of what of it has failed so far. It waits for nothing.
func (f *freight) failed() error {
	for i := range f.under {
		if h := f.under[i]; proto.Ended(h) {
			f.under[i] = proto.Handle{}
			if err := h.Wait(context.Background()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ship sends out what is for member only, or everyone, in the coming turn. That is allowed as soon as the last turn's barrier is over.
func (c *turns) ship(only int, p parcel) (f freight, err error) {
	t, box := c.t, c.coming()
	c.hush(sched.Steadily)
	defer c.hush(sched.NoMore)
	for i := 1; i < len(t.ranks) && err == nil; i++ {
		if m := (t.me + i) % len(t.ranks); only == everyone || only == m {
			if from := p.stretch(m); from.Bytes > 0 {
				f.under[i], err = t.e.PutAhead(c.op, c.peer(m), box+c.placeOf(t.me, m, p.alone), from)
			}
		}
	}
	return f, err
}

// pushed is hand of what is pushed, to member only, or everyone. What the turn behind pushes sets out before what came in this one is looked at. All members agree
// on root, on lo and hi, and that it is pushed.
func (c *turns) pushed(ctx context.Context, what call, root, only int, p parcel) error {
	t := c.t
	now, err := t.freight, error(nil)
	if t.freight = (freight{}); !now.ahead {
		now, err = c.ship(only, p)
	}
	if err == nil {
		err = now.failed() // of this the flags would tell as of what has arrived
	}
	if err == nil {
		err = c.handOver(ctx, what, root, slip{some: p.whole.Bytes > 0 && p.lo < p.part, pushed: true, alone: p.alone})
	}
	if next := p.next(); err == nil && next.part-next.lo > slipBytes { // what is less may go as a slip
		t.freight, err = c.ship(only, next)
		t.freight.ahead = true
		t.e.SetOut()
	}
	if aerr := now.arrive(); err == nil {
		err = aerr
	}
	return err
}

// hush has nobody wakened for what the others push while this one pushes so much that theirs comes meanwhile, sched.Steadily, until sched.NoMore: he polls for it
// next. It is not for the wait, which knows by itself when it goes to sleep.
func (c *turns) hush(how sched.Polling) {
	if c.wide {
		c.t.e.Hush(how)
	}
}

// recall waits for what has set out for a turn that a call has not come to, since it has failed.
func (c *turns) recall() {
	if c.t.freight.ahead {
		_ = c.t.freight.arrive() // the call's error is another
		c.t.freight = freight{}
	}
}
