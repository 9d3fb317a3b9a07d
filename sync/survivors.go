package pgsync

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"gopgas/internal/agree"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Survivors returns the team of t's members that live, in t's order: the way to go on after a collective has
// ended with transport.ErrPeerGone. All living members call it and get teams of the same members; members that die
// meanwhile are left out, and nobody waits for them. Who has called it goes on without the dead: its world closes in good order when all
// who live have closed theirs, unless others die. It works on a team whose collectives do so no more, and waits for those
// that this rank has started. The team t itself is of no more use than before, and of none where a member has left a barrier before its end: who calls this does not go on with it,
// and collectives of t in which others are end with ErrAbandoned. When ctx ends first, call it again; who closes
// its world instead is gone for the others if they count on it by then, and its Close returns an error wrapping ErrState.
// Who calls it when another one closes its world gets an error wrapping ErrMismatch, now and in later calls, and closes its own.
//
// It takes two agreements (package agree), and between them an exchange of a message between any two members, twice. Who leaves the exchange tells the others.
func (t *Team) Survivors(ctx context.Context) (*Team, error) {
	const op = "survivors"
	if t.lane != nil {
		return nil, transport.NewOpError(op, -1, fmt.Errorf("%w: in a started call", ErrState))
	}
	if err := t.Drain(ctx); err != nil {
		return nil, err
	}
	if err := t.unmade(); err != nil { // who lacks the team would not come
		return nil, transport.NewOpError(op, -1, err)
	}
	if err := t.enter(ctx, op); err != nil {
		return nil, err
	}
	defer t.leave()
	t.giveUpLeft()
	for s := &t.core.surviving; ; {
		nt, made, died, err := t.survive(ctx)
		if nt != nil || err != nil {
			if sched.Ended(ctx) == nil { // else it is called again, and the others count on
				s.failures = 0
			}
			return nt, transport.NewOpError(op, -1, err)
		}
		if died {
			continue
		}
		// All members count alike. The end of one may be known too late to be part of the agreement.
		if s.failures++; s.failures == maxFailures {
			s.failures = 0
			return nil, transport.NewOpError(op, -1, made)
		}
	}
}

// errGivenUp: this rank does not go on with what its context has ended.
var errGivenUp = errors.New("this rank left it, and called Survivors instead of going on with it")

// giveUpLeft tells the others of a barrier that this member has left: they may be in it, or behind it in another collective of the team, and would never come here.
// Where somebody is gone, which has ended it for all, they come.
func (t *Team) giveUpLeft() {
	if t.pending && !t.doomed() {
		t.spoil(t.cur.op, transport.NewOpError(t.cur.op, -1, errGivenUp))
	}
}

// surviving is what a call of Survivors that ctx has ended leaves to the next one.
type surviving struct {
	failures int            // so far
	left     *attempt       // in its second agreement; nil: none is
	asked    []parting      // by member: whether it closes its world
	closing  *agree.Verdict // of the first agreement of Farewell, in which this call has found the others; nil: it has not
}

// attempt is one to make a team, between its two agreements.
type attempt struct {
	alive agree.Verdict
	team  *Team // nil: it could not be made
	made  error // why
}

// maxFailures is how often survivors try to make a team when none of them is known to have died in between.
const maxFailures = 3

// survive makes one attempt, or brings one to its end that ctx has ended. Without a team and err, made says why there is none, and died whether a member has died in
// between, on which all agree.
func (t *Team) survive(ctx context.Context) (nt *Team, made error, died bool, err error) {
	a := t.core.surviving.left
	if a == nil {
		if a, err = t.attempt(ctx); err != nil {
			return nil, nil, false, err
		}
	}
	// Who could not make its part says so, and then nobody keeps his.
	still, err := t.agree(ctx, a.made == nil, func() error { return t.closes(ctx) })
	if ended := sched.Ended(ctx); err != nil && (errors.Is(err, errCloses) || ended != nil && errors.Is(err, ended)) { // the others may agree without another word of this member's: it keeps to what it has said
		t.keep(a)
		return nil, nil, false, err
	}
	t.keep(nil)
	if err == nil && still.Vote && slices.Equal(still.Set, a.alive.Set) {
		t.goOn(a.alive.Members(len(t.ranks)))
		return a.team, nil, false, nil
	}
	if a.team != nil {
		err = errors.Join(err, a.team.heap.Close())
	}
	if a.made == nil {
		a.made = fmt.Errorf("%w: some member could not make its part of the team", ErrState)
	}
	return nil, a.made, !slices.Equal(still.Set, a.alive.Set), err
}

// keep notes the attempt that the next call is to bring to its end; nil: none.
func (t *Team) keep(a *attempt) {
	s := &t.core.surviving
	switch {
	case a != nil && s.left == nil:
		t.core.running.owed.Add(1)
	case a == nil && s.left != nil:
		t.core.running.owed.Add(-1)
	}
	s.left = a
}

// attempt agrees on who lives and makes this member's part of their team.
func (t *Team) attempt(ctx context.Context) (*attempt, error) {
	if t.core.surviving.closing != nil { // the next agreement is the second one of Farewell
		return nil, errCloses
	}
	alive, err := t.agree(ctx, true, func() error { return t.closes(ctx) })
	if err != nil {
		return nil, err
	}
	if !alive.Has(t.me) {
		return nil, agree.ErrTakenForGone
	}
	if !alive.Vote {
		if t.missed(alive) == nil { // else those who close are gone, and this rank may go on without them
			t.core.surviving.closing = &alive
		}
		return nil, errCloses
	}
	members := alive.Members(len(t.ranks))
	x := &survivors{t: t, members: members, turn: t.core.table.Epoch() << 8}
	for _, m := range members {
		x.ranks = append(x.ranks, t.ranks[m])
	}
	a := &attempt{alive: alive}
	if a.team, a.made = t.found(ctx, x, members, slices.Index(members, t.me)); a.made != nil {
		x.leave()
	}
	return a, nil
}

// survivors is an exchange among members that live. They meet by a word that each sets at each of the others.
type survivors struct {
	t       *Team
	members []int
	ranks   []int
	turn    uint64
}

// Interrupted implements sched.Watch: the exchange ends when another one of its members is gone.
func (x *survivors) Interrupted() error {
	if x.t.core.running.quit.Load() {
		return transport.ErrClosed
	}
	if _, err := x.t.e.Peers.CheckAny(x.ranks); err != nil {
		return err
	}
	return x.t.e.Alive()
}

// Exchange implements proto.Exchanger. The cards lie in the outboxes of a lane, in which nothing goes on: all members are
// in Survivors.
func (x *survivors) Exchange(ctx context.Context, card []byte) ([][]byte, error) {
	t, n := x.t, len(x.t.ranks)
	if len(card) > boxPayload(n)-8 {
		return nil, fmt.Errorf("%w: a card of %d bytes, the largest is %d", transport.ErrLimit, len(card), boxPayload(n)-8)
	}
	x.turn++
	off := boxOff(n, 0, int(x.turn&1)) + outboxHeader
	box := t.local.Slice(off, 8+len(card)).Data()
	binary.LittleEndian.PutUint64(box, uint64(len(card)))
	copy(box[8:], card)
	for _, m := range x.members {
		if err := t.e.Store64(&t.peers[m], newsOff(n)+8*t.me, x.turn); err != nil {
			return nil, err
		}
	}
	out := make([][]byte, len(x.members))
	for i, m := range x.members {
		if err := x.hear(ctx, m); err != nil {
			return nil, err
		}
		bytes, err := t.e.Load64(&t.peers[m], off)
		if err != nil {
			return nil, err
		}
		if bytes > uint64(boxPayload(n)-8) {
			return nil, fmt.Errorf("card of rank %d: %w", t.ranks[m], ErrMismatch)
		}
		out[i] = make([]byte, bytes)
		if err := t.e.Get(&t.peers[m], off+8, mem.Of(out[i])); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// hear waits until member has come to this turn, unless somebody closes his world.
func (x *survivors) hear(ctx context.Context, member int) error {
	t := x.t
	word := t.local.Word64(newsOff(len(t.ranks)) + 8*member)
	for word.Load() < x.turn {
		until, cancel := t.e.Sched.WithTimeout(ctx, farewellLook)
		err := x.await(until, member, word)
		ended := err != nil && until.Err() != nil && sched.Ended(ctx) == nil
		cancel()
		if ended {
			err = t.closes(ctx)
		}
		if err != nil {
			return err
		}
	}
	if word.Load()&hasLeft == hasLeft {
		return fmt.Errorf("%w: rank %d left the call", ErrAbandoned, t.ranks[member])
	}
	return nil
}

// await waits until a word of a member's has come to this turn.
func (x *survivors) await(ctx context.Context, member int, word *atomic.Uint64) error {
	sp := x.t.e.Sched.Begin(ctx, sched.What{Op: "survivors", Peer: x.t.ranks[member]}, x)
	defer sp.End()
	for word.Load() < x.turn {
		if err := sp.Step(); err != nil {
			return err
		}
	}
	return nil
}

// hasLeft is the turn, of those of an attempt, at which a member sets its words when it has left the exchange.
const hasLeft = 0xff

// leave tells the others not to wait for this member in the exchange.
func (x *survivors) leave() {
	for _, m := range x.members {
		_ = x.t.e.Store64(&x.t.peers[m], newsOff(len(x.t.ranks))+8*x.t.me, x.turn|hasLeft) // who is gone does not wait
	}
}
