package pgsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// turns is a collective call of this member while it goes on. A turn is: write to one's outbox, meet all others, read
// from theirs. It belongs to the goroutine that makes the call. Its exported methods are for the collectives of other packages.
type turns struct {
	t       *Team
	l       *lane
	op      string
	number  uint64 // of the call
	ticket  uint64 // its place in the lane's queue; a view has the lane to itself
	opened  bool   // the lane's present barrier is this call's
	purpose uint64 // of that barrier
	off     int    // the outbox of the present turn
	data    int    // where its bytes lie
	wide    bool   // they do so in the room, see file room.go
	handing bool   // this turn is one of slips, see file slip.go
	heeds   heed   // whom it waits for, see file ahead.go
	heeders heed   // who waits for this member, likewise
	call    call
	contest *contest      // nil: it goes one way, see file contest.go
	went    way           // that it takes
	timed   bool          // from here on
	began   time.Duration // when
}

// Collective begins a collective call, of a kind that the table of kinds lists. End must follow.
func (t *Team) Collective(ctx context.Context, op string) (*turns, error) { return t.begin(ctx, op) }

// begin opens a data collective; end closes it.
func (t *Team) begin(ctx context.Context, op string) (*turns, error) {
	if len(t.ranks) == 1 {
		if err := ended(ctx, op); err != nil {
			return nil, err
		}
	}
	if err := t.enter(ctx, op); err != nil {
		return nil, t.unentered(ctx, op, err)
	}
	c, err := t.open(ctx, op)
	if err == nil {
		err = c.await(ctx)
		if err == nil {
			err = t.awaitTaken(ctx, op) // behind this call the program may allocate, as for a window
		}
		if err == nil {
			return c, nil
		}
		return nil, c.End(err) // its number is taken: the others will wait for it
	}
	t.leave()
	return nil, t.Abandon(op, err) // in a barrier before: others come to this call all the same
}

// open numbers a call. What was left before its end is brought to it first.
func (t *Team) open(ctx context.Context, op string) (*turns, error) {
	if err := t.core.abandonment(); err != nil {
		return nil, transport.NewOpError(op, -1, err)
	}
	c := &t.cur
	if t.pending {
		if err := t.proceed(ctx); err != nil {
			return nil, err
		}
	}
	*c = t.numbered(op)
	return c, nil
}

// numbered is a call that has its place.
func (t *Team) numbered(op string) turns {
	c := turns{t: t, op: op, l: t.lane, number: t.call}
	if t.lane == nil {
		c.number, c.l, c.ticket = t.core.next()
	}
	return c
}

// await waits until the lane is this call's.
func (c *turns) await(ctx context.Context) error {
	if c.t.lane != nil {
		return nil
	}
	if c.l.serving.Load() != c.ticket {
		if c.t.debts.on(c.l) {
			if err := c.t.pay(ctx, c.l); err != nil {
				return err
			}
		}
		if err := c.queue(ctx, nil); err != nil {
			return err
		}
	}
	// Who had the lane before may have left it in the midst of a turn, in which the others still read what this call would write over.
	if err := c.t.core.abandonment(); err != nil {
		return transport.NewOpError(c.op, -1, err)
	}
	return nil
}

// queue waits until all who are before this call in the lane's queue are done, and does meanwhile what it is told to.
func (c *turns) queue(ctx context.Context, meanwhile func() error) error {
	if c.l.serving.Load() == c.ticket {
		return nil
	}
	if c.ofStarted(ctx) {
		return transport.NewOpError(c.op, -1, errOwnEnd)
	}
	sp := c.t.e.Sched.Begin(ctx, sched.What{Op: c.op, Peer: -1}, (*together)(c.t))
	defer sp.End()
	for c.l.serving.Load() != c.ticket {
		err := c.t.core.abandonment() // whoever had the lane before may have left it for good
		if err == nil && meanwhile != nil {
			err = meanwhile()
		}
		if err == nil {
			err = sp.Step()
		}
		if err != nil {
			return c.t.waitError(c.op, -1, err)
		}
	}
	return nil
}

// release lets the next call use the lane, unless this one has gone ahead.
func (c *turns) release() {
	if c.t.lane == nil && !c.t.debts.on(c.l) {
		c.l.free(c.t, c.ticket)
	}
}

// free lets the call behind that with a ticket use the lane.
func (l *lane) free(t *Team, ticket uint64) {
	if l.serving.CompareAndSwap(ticket, ticket+1) {
		t.e.Sched.Ring()
	}
}

// End closes a data collective; an error that left it half done spoils the team for further ones.
func (c *turns) End(err error) error {
	if err != nil {
		c.recall()
		err = c.t.instead(c.op, err)
		c.t.spoil(c.op, err)
	} else {
		c.settle()
	}
	c.release()
	c.t.leave()
	return err
}

// call is what a member does in a turn, so that the others can tell when they do not do the same.
type call uint64

// kinds are the collectives. Those behind reduce belong to other packages.
var kinds = [...]string{
	"barrier", "exchange", "broadcast", "allgather", "reduce", "allreduce", "allocate", "free", refusing,
	"scan", "exscan", "gather", "gatherv", "scatter", "scatterv", "alltoall", "alltoallv", "allgatherv",
	"fence", "close",
	"create", "apply", "combine", "copy", "transpose", "resize", "update-ghosts", "sort", "merge", "grow", "len", // made of several others: see Abandon
}

// inBytes is what stands for a type where there are bytes alone.
const inBytes = 1

// callOf packs kind, the type of an element (its atom.TypeCode), a detail of 3 bits, and a number of elements. Reductions and prefixes alone have a
// detail: how to combine. The codes of the numbers that they take leave room for it.
func callOf(op string, elem, detail, n int) call {
	kind := max(slices.Index(kinds[:], op), 0)
	return call(uint64(kind)<<56 | uint64(detail&7)<<52 | uint64(elem&0xffff)<<40 | uint64(n)&(1<<40-1))
}

func (c call) name() string { return kinds[min(int(c>>56), len(kinds)-1)] }

// count is the number of elements, or which of several things a meeting is about.
func (c call) count() int { return int(c & (1<<40 - 1)) }

func (c call) String() string {
	elem := int(c >> 40 & 0xffff)
	switch {
	case elem == inBytes:
		return fmt.Sprintf("%s of %d bytes", c.name(), c.count())
	case elem > 0 && (strings.Contains(c.name(), "reduce") || strings.Contains(c.name(), "scan")):
		return fmt.Sprintf("%s (%v) of %d elements of %s", c.name(), Op(elem>>12), c.count(), atom.NameOf(elem&0xfff))
	case elem > 0:
		return fmt.Sprintf("%s of %d elements of %s", c.name(), c.count(), atom.NameOf(elem))
	case c.count() > 0:
		return fmt.Sprintf("%s of the team's window %d", c.name(), c.count())
	}
	return c.name()
}

// box is the offset of the outbox of the coming turn.
func (c *turns) box() int { return boxOff(len(c.t.ranks), c.l.number, int(c.l.round&1)) }

// Payload is how many bytes an outbox holds.
func (c *turns) Payload() int {
	if c.wide {
		return roomBytes
	}
	return boxPayload(len(c.t.ranks))
}

// Slot is how many bytes of each member a Gather can move.
func (c *turns) Slot() int { return slotBytes(len(c.t.ranks)) }

// Write fills byte off and following of the coming turn's outbox.
func (c *turns) Write(off int, data mem.Range) {
	mem.Copy(c.Box(off, data.Bytes).Data(), data.Data())
	c.t.e.Sched.ChargeCopy(data.Bytes, data.Bytes)
}

// Box is n bytes from off on of this member's outbox of the coming turn, to be written in place.
func (c *turns) Box(off, n int) mem.Range {
	return c.local().Slice(c.coming()+off, n)
}

// Turn ends the writing half of a turn, in which all members handle n elements, whose atom.TypeCode is elem, in the way that detail says,
// and begins the reading half. root is part of what all must agree on.
func (c *turns) Turn(ctx context.Context, elem, detail, n, root int) error {
	return c.turn(ctx, callOf(c.op, elem, detail, n), root, visitor{})
}

func (c *turns) turn(ctx context.Context, what call, root int, v visitor) error {
	c.off, c.data, c.call = c.box(), c.coming(), what
	mem.Publish(c.t.local.Word64(c.off), uint64(what)) // the barrier's flags come behind it
	c.l.round++
	if c.wide {
		c.t.room.turns++
	}
	return c.barrier(ctx, turnPurpose(what, root), v)
}

// check verifies that member makes the same call as this rank.
func (c *turns) check(member int) error {
	theirs, err := c.t.e.Load64(&c.t.peers[member], c.off)
	if err != nil {
		return err
	}
	return c.same(member, theirs)
}

// same verifies that the call of a member is this rank's.
func (c *turns) same(member int, theirs uint64) error {
	if call(theirs) != c.call {
		return c.Mismatch(member, fmt.Sprintf("this rank is in %s, rank %d in %s", c.call, c.t.ranks[member], call(theirs)))
	}
	return nil
}

// Mismatch tells all members that this one and another do not agree, and returns the error.
func (c *turns) Mismatch(member int, what string) error {
	return c.t.poison(c.op, member, fmt.Errorf("%w: %s", ErrMismatch, what))
}

// PushAll puts pieces of src into the other members' outboxes of the coming turn, all at once, and returns when they are there. That is allowed
// before the turn's barrier, since what was in those outboxes two turns ago has been read by all who have come to the barrier of the last one,
// and nobody else writes there in such a turn.
func (c *turns) PushAll(ctx context.Context, src mem.Range, of func(member int) (from, bytes int)) error {
	n, box := len(c.t.ranks), c.coming()
	member := func(i int) int { return (c.t.me + i + 1) % n }
	err := c.t.e.PutRuns(c.op, n-1, func(i int) proto.Run {
		from, bytes := of(member(i))
		return proto.Run{To: c.peer(member(i)), Far: box, Near: from, Bytes: bytes}
	}, src)
	for i := 0; i < n-1 && err == nil; i++ {
		if _, bytes := of(member(i)); bytes > 0 {
			err = c.t.e.FlushContext(ctx, c.peer(member(i))) // the barrier's flags do not all go the way of the puts
		}
	}
	return err
}

// Take copies what member has pushed into this one's outbox in the present turn.
func (c *turns) Take(member int, dst mem.Range) error {
	mem.Copy(dst.Data(), c.local().Slice(c.data, dst.Bytes).Data())
	c.t.e.Sched.ChargeCopy(dst.Bytes, dst.Bytes)
	return c.check(member)
}

// refusing is the call of a member that cannot make one.
const refusing = "call with wrong arguments"

// Refuse reports err, which is about this member's arguments, after all members have had a chance to notice: where all
// refuse, the team stays whole; where others make the call, all of them get an error and nobody waits for ever.
func (t *Team) Refuse(ctx context.Context, op string, err error) error {
	one := behind{whose: new(int)} // the next refusal does not go on with this one if ctx ends in it: it is one more
	if meeting := t.meetThen(ctx, op, callOf(refusing, 0, 0, 0), one); errors.Is(meeting, ErrMismatch) {
		t.core.fail(err)
	}
	return err
}
