package pgsync

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/internal/shape"
	"gopgas/transport"
)

// Barrier returns when all members have called it. What a member stored into memory of its own before is there for the
// gets and views of the others after it; puts into others' memory need a Window.Fence or Flush. A barrier whose context
// ended is continued by the next collective call.
//
// It is a dissemination barrier (Hensgen, Finkel, Manber 1988): in round k a member tells the one 2^k after it
// and hears from the one 2^k before it; ceil(log2 n) rounds with a message of each member, no root, no atomics. Where members
// share nodes and map each other's memory it is three of them: of a node, of the nodes' first members, of a node. Up to eight
// members of a node take one round, in which each tells all (n-way dissemination: Hoefler, Mehlan, Mietke, Rehm 2006).
func (t *Team) Barrier(ctx context.Context) error {
	return t.meet(ctx, "barrier", 0)
}

// Meet is a Barrier that only meets the same one: op says what for, as the table of kinds lists it, and which is a number that
// tells several such things of the team apart. Members that differ get ErrMismatch. It is for the layers above.
func (t *Team) Meet(ctx context.Context, op string, which int) error {
	return t.meet(ctx, op, callOf(op, 0, 0, which))
}

// MeetThen is Meet behind which then is called, once: also where ctx ends first, by the next collective call, which brings the meeting to its end. So what members
// do to the team's heap they do at the same place in the order of calls. Who meets again with the same whose goes on with the meeting, also where other
// ones were left behind it. It is for the layers above.
func (t *Team) MeetThen(ctx context.Context, op string, which int, whose any, then func(ctx context.Context)) error {
	return t.meetThen(ctx, op, callOf(op, 0, 0, which), behind{whose, then})
}

// behind is what is done when a barrier has come to its end, and for whom.
type behind struct {
	whose any
	then  func(ctx context.Context) // nil: nothing
}

// meet is a barrier that all members make for the same purpose.
func (t *Team) meet(ctx context.Context, op string, purpose call) error {
	return t.meetThen(ctx, op, purpose, behind{})
}

func (t *Team) meetThen(ctx context.Context, op string, purpose call, b behind) error {
	if len(t.ranks) == 1 {
		if err := ended(ctx, op); err != nil {
			return err
		}
	}
	if err := t.enter(ctx, op); err != nil {
		if purpose.name() == refusing { // which nobody makes again
			return t.unentered(ctx, refusing, err)
		}
		return err
	}
	defer t.leave()
	if n := t.leftThat(op, purpose, b.whose); n > 0 {
		return t.proceedSome(ctx, n)
	}
	c, err := t.open(ctx, op)
	if err != nil {
		if t.pending && !known(err) { // the others come to this one all the same
			c := t.numbered(op)
			c.purpose = uint64(purpose)
			t.unbegun = append(t.unbegun, unbegun{c, b})
		}
		return err
	}
	c.purpose = uint64(purpose)
	t.pending, t.behind = true, b
	return t.proceed(ctx)
}

// unbegun is a barrier whose context has ended in the one before, which was left: it is the next one when that has come to its end.
type unbegun struct {
	c turns
	b behind
}

// lefts returns how many barriers were left that have not come to their end.
func (t *Team) lefts() int {
	if !t.pending {
		return 0
	}
	return 1 + len(t.unbegun)
}

// leftAt returns the barrier that was left i-th of those, from 0 on, and what is behind it.
func (t *Team) leftAt(i int) (*turns, behind) {
	if i == 0 {
		return &t.cur, t.behind
	}
	u := &t.unbegun[i-1]
	return &u.c, u.b
}

// leftThat returns how many of the barriers that were left come to their end with this one, which is called again: those before it and itself; 0: it was not left. An object has one
// of its kind, behind which others may have been left. What is nobody's is called again if it was the last.
func (t *Team) leftThat(op string, purpose call, whose any) int {
	for n := t.lefts(); n > 0; n-- {
		if c, b := t.leftAt(n - 1); c.purpose == uint64(purpose) && c.op == op && b.whose == whose {
			return n
		}
		if whose == nil {
			break
		}
	}
	return 0
}

// leftFor returns for whom a barrier of this purpose was left that is pending; nil: there is none.
func (t *Team) leftFor(op string, purpose call) any {
	if !t.busy.CompareAndSwap(0, 1) {
		return nil // another goroutine is in a collective, and has gone on with it
	}
	defer mem.Publish32(&t.busy, 0)
	if n := t.lefts(); n > 0 {
		if c, b := t.leftAt(n - 1); c.purpose == uint64(purpose) && c.op == op {
			return b.whose
		}
	}
	return nil
}

// endLeft brings what was left to its end.
func (t *Team) endLeft(ctx context.Context, op string) error {
	if err := t.enter(ctx, op); err != nil {
		return err
	}
	defer t.leave()
	if err := t.awaitTaken(ctx, op); err != nil || !t.pending {
		return err
	}
	return t.proceed(ctx)
}

// proceed goes on with the barrier that is pending, and with those behind it that were left before they began.
func (t *Team) proceed(ctx context.Context) error { return t.proceedSome(ctx, t.lefts()) }

// proceedSome is proceed with the first n of them. What is behind those stays left.
func (t *Team) proceedSome(ctx context.Context, n int) error {
	for {
		if err := t.proceedOne(ctx); err != nil || len(t.unbegun) == 0 {
			return err
		}
		next := t.unbegun[0]
		t.unbegun = slices.Delete(t.unbegun, 0, 1)
		t.cur, t.pending, t.behind = next.c, true, next.b
		if n--; n == 0 {
			return nil
		}
	}
}

func (t *Team) proceedOne(ctx context.Context) error {
	c := &t.cur
	if err := t.core.failure(); err != nil {
		return transport.NewOpError(c.op, -1, fmt.Errorf("%w: %w", ErrAbandoned, err))
	}
	err := c.await(ctx)
	if err == nil {
		err = c.barrier(ctx, c.purpose, visitor{})
	}
	if errors.Is(err, ErrMismatch) || errors.Is(err, ErrAbandoned) {
		t.core.fail(err)
		t.unbegun = nil
	} else if err != nil {
		return err
	}
	then := t.behind.then
	t.pending, t.behind = false, behind{}
	c.release()
	if err == nil && then != nil {
		_ = t.awaitTaken(context.Background(), c.op) // the others have come past it
		then(ctx)
	}
	return err
}

// A flag holds the number of the barrier on its lane, and in its low bits the sum over all calls up to it, by which two
// members see that they did not make the same ones.
const (
	sumBits = 16
	sumMul  = 0x9e3779b97f4a7c15
)

// visitor has something done in a barrier. Both functions may be nil.
type visitor struct {
	// begin is called when this member begins a phase: those of the phase before have all come.
	begin func(p *shape.Phase) error
	// heard is called when this member has heard from the one dist places before it in p: what that one wrote before its
	// round can be read now.
	heard func(p *shape.Phase, from, dist int) error
}

// barrier is one barrier on the call's lane. After an error it can be called again: it does the same once more.
func (c *turns) barrier(ctx context.Context, purpose uint64, v visitor) error {
	t, l := c.t, c.l
	if !c.opened {
		// Who has left may have told this member before: its flag would be taken for all that is awaited. Who has left because members differ has told that first.
		if err := t.abandoned(); err != nil {
			return t.instead(c.op, t.waitError(c.op, -1, err))
		}
		l.next(purpose, c.number)
		c.opened, c.purpose = true, purpose
		l.board.Enter()
	}
	for i := range t.shape.Phases {
		p := &t.shape.Phases[i]
		if v.begin != nil {
			if err := v.begin(p); err != nil {
				return err
			}
		}
		var err error
		if v.heard == nil && crowded(p) || c.handing {
			err = c.atOnce(ctx, p)
		} else {
			err = c.inRounds(ctx, p, v)
		}
		if err != nil {
			return err
		}
	}
	if c.heeds != all {
		c.opened = false
		c.owe()
		return nil
	}
	if t.debts.lanes != 0 {
		if err := t.payAll(ctx); err != nil {
			return err
		}
	}
	c.opened = false
	if t.core.origin.Load() != nil {
		t.core.origin.Store(nil) // all members have this team
	}
	l.board.Leave()
	return nil
}

// inRounds is the dissemination of a phase, each round of which hears from twice as many members as the one before.
func (c *turns) inRounds(ctx context.Context, p *shape.Phase, v visitor) error {
	for dist := 1; dist < len(p.Members); dist *= 2 {
		if err := c.tell(p, dist); err != nil {
			return err
		}
		from, err := c.hear(ctx, p, dist)
		if err != nil {
			return err
		}
		if v.heard == nil {
			continue
		}
		if err := v.heard(p, from, dist); err != nil {
			return c.t.instead(c.op, err)
		}
	}
	return nil
}

// atOnce is the same in a single round, for a few members that store into each other's memory: stores are cheap there, while a round costs a turn on
// the core of every member that shares one. And for slips, which each member has for each other.
func (c *turns) atOnce(ctx context.Context, p *shape.Phase) error {
	if err := c.tellAll(p); err != nil {
		return err
	}
	for dist := 1; dist < len(p.Members); dist++ {
		if c.heeds != all && c.heeds != only(p.Members[shape.Behind(p.Me, dist, len(p.Members))]) {
			continue
		}
		if _, err := c.hear(ctx, p, dist); err != nil {
			return err
		}
	}
	return nil
}

// tellAll sets all others' flags, with which what has been pushed may set out.
func (c *turns) tellAll(p *shape.Phase) (err error) {
	if !c.handing {
		return c.tellEach(p)
	}
	c.hush(sched.Steadily)
	err = c.tellEach(p)
	c.hush(sched.NoMore)
	return err
}

func (c *turns) tellEach(p *shape.Phase) error {
	for dist := 1; dist < len(p.Members); dist++ {
		if err := c.tell(p, dist); err != nil {
			return err
		}
	}
	return nil
}

// mostAtOnce is how many members of a node each tell all others.
const mostAtOnce = 8

// crowded says whether all may tell all in a phase.
func crowded(p *shape.Phase) bool { return p.Near && len(p.Members) <= mostAtOnce }

const _ = uint(maxRounds - 2*mostAtOnce) // there are flags for them behind those of the powers of two

// flagAt is where on lane l the flag lies that the one dist places before a member sets. Both kinds of a phase have those of the powers of two in common:
// where members are in different ones by mistake, they find out.
func flagAt(l *lane, p *shape.Phase, dist int) int {
	place := bits.Len(uint(dist)) - 1
	if dist&(dist-1) != 0 {
		place = mostAtOnce + dist
	}
	return headBytes + l.number*flagBytes + (int(p.Area)*maxRounds+place)*flagStride
}

// tell sets the flag of the one dist places after this member in p.
func (c *turns) tell(p *shape.Phase, dist int) error {
	to, line := p.Members[(p.Me+dist)%len(p.Members)], flagAt(c.l, p, dist)
	if c.t.slip.some {
		if err := c.lay(to, line); err != nil {
			return c.t.instead(c.op, err)
		}
	}
	var err error
	if peer, flag := &c.t.peers[to], c.l.gen<<sumBits|c.l.sum; c.awaited(to) {
		err = c.t.e.Store64(peer, line, flag)
	} else {
		err = c.t.e.StoreInTime(peer, line, flag)
	}
	if err != nil {
		return c.t.instead(c.op, err)
	}
	return nil
}

// hear waits for the flag of the one dist places before this member in p, looks whether that one has made the same calls, and returns which it is.
func (c *turns) hear(ctx context.Context, p *shape.Phase, dist int) (from int, err error) {
	from = p.Members[shape.Behind(p.Me, dist, len(p.Members))]
	have, err := c.heardFrom(ctx, flagAt(c.l, p, dist), from)
	if err == nil {
		err = c.compare(from, have)
	}
	return from, err
}

// next begins the lane's next barrier.
func (l *lane) next(purpose, number uint64) {
	l.gen++
	l.before = l.sum
	l.sum = mixed(l.sum, purpose, number)
}

// mixed is the sum with one more call.
func mixed(sum, purpose, number uint64) uint64 {
	return ((sum^purpose^number)*sumMul + sumMul) >> (64 - sumBits)
}

// turnPurpose is what the barrier of a turn is for.
func turnPurpose(what call, root int) uint64 { return uint64(what) ^ uint64(root)*sumMul }

// The numbers of started calls differ from those of blocking ones, and their ends from other purposes.
const (
	startedCall = 1 << 63
	endOfCall   = 1<<64 - 1
)

// endStarted closes a started call on its lane: it takes the place of one more barrier, but nobody waits for it. Who goes on
// in the call when the one before it has ended it sees that they do not agree.
func (t *Team) endStarted() error {
	l := t.lane
	l.next(endOfCall, t.call)
	for i := range t.shape.Phases {
		p := &t.shape.Phases[i]
		if p.Area == shape.Release || len(p.Members) == 1 {
			continue
		}
		to := p.Members[(p.Me+1)%len(p.Members)]
		if err := t.e.Store64(&t.peers[to], flagAt(l, p, 1), l.gen<<sumBits|l.sum); err != nil {
			return t.instead("start", err)
		}
	}
	return nil
}

// instead returns what ends a barrier that err has stopped: where members disagree, err is likely to follow from that.
func (t *Team) instead(op string, err error) error {
	if wrong := t.poisoned(); wrong != nil && !errors.Is(err, ErrMismatch) {
		return transport.NewOpError(op, -1, wrong)
	}
	return err
}

// heardFrom waits for member from's flag at off and returns it.
func (c *turns) heardFrom(ctx context.Context, off, from int) (uint64, error) {
	t := c.t
	flag := t.local.Word64(off)
	if have := flag.Load(); have>>sumBits >= c.l.gen {
		t.e.Sched.Seen()
		return have, nil
	}
	var asked parting
	watch := (*together)(t)
	sp := t.e.Sched.Begin(ctx, sched.What{Op: c.op, Peer: t.ranks[from]}, watch)
	for flag.Load()>>sumBits < c.l.gen {
		if err := sp.Step(); err != nil {
			sp.End()
			return 0, t.waitError(c.op, t.ranks[from], err)
		}
		if (asked.under() || sp.Unsure()) && c.forsaken(from, &asked) && flag.Load()>>sumBits < c.l.gen && watch.Interrupted() == nil { // else a better reason is known
			sp.End()
			return 0, t.poison(c.op, from, fmt.Errorf("%w: this rank is in %s, and rank %d closes its world", ErrMismatch, c.doing(), t.ranks[from]))
		}
	}
	sp.End()
	t.e.NoteWait(&sp, &t.peers[from])
	return flag.Load(), nil
}

// forsaken reports whether a member has closed its world, and so comes to no call of this team any more. In the team of all ranks that is a barrier, and such
// mismatches are found as others are.
func (c *turns) forsaken(member int, asked *parting) bool {
	return c.t.core != c.t.core.running.world.core && asked.known(c.t, c.t.ranks[member])
}

// compare looks whether the member behind a flag has made the same calls. A flag that is ahead is compared when this rank
// gets there: sums that once differ go on to differ.
func (c *turns) compare(member int, flag uint64) error {
	if flag>>sumBits != c.l.gen || flag&(1<<sumBits-1) == c.l.sum {
		return nil
	}
	return c.t.poison(c.op, member, c.differ(member, flag&(1<<sumBits-1)))
}

// poison tells all members, once, that this one and another do not agree: their calls end. Who finds a mismatch goes no
// further, so that nobody else gets through the barrier. It returns err as an error of op.
func (t *Team) poison(op string, member int, err error) error {
	t.tell(poisonWord, uint64(t.me+1)<<32|uint64(member+1))
	return transport.NewOpError(op, t.ranks[member], err)
}

// poisoned returns the error that some member has found, or nil.
func (t *Team) poisoned() error {
	word := t.local.Word64(poisonWord).Load()
	if word == 0 {
		return nil
	}
	finder, other := int(word>>32)-1, int(word&0xffffffff)-1
	if finder < 0 || other < 0 || finder >= len(t.ranks) || other >= len(t.ranks) {
		return ErrMismatch
	}
	return fmt.Errorf("%w: ranks %d and %d do not make the same collective calls", ErrMismatch, t.ranks[finder], t.ranks[other])
}
