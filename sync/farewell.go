package pgsync

import (
	"context"
	"fmt"
	"time"

	"gopgas/internal/agree"
	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// goOn notes that the program goes on without the members of t that are not among members: it has made a team of the others.
func (t *Team) goOn(members []int) {
	r := t.core.running
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.without == nil {
		r.without = map[int]bool{}
	}
	kept := make(map[int]bool, len(members))
	for _, m := range members {
		kept[m] = true
	}
	for m, rank := range t.ranks {
		if !kept[m] {
			r.without[rank] = true
		}
	}
}

// foreseen reports whether the program goes on without a rank.
func (r *running) foreseen(rank int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.without[rank]
}

// unforeseen returns the error of a member that is gone and without which the program has not gone on; nil if there is none.
func (t *Team) unforeseen() error {
	for _, rank := range t.ranks {
		if err := t.e.Peers.Check(rank); err != nil && !t.core.running.foreseen(rank) {
			return err
		}
	}
	return nil
}

// GoesOn reports whether members are gone and the program goes on without every one of them, in teams of Survivors. It is for the composition
// root, as is Farewell.
func (t *Team) GoesOn() bool { return t.e.Peers.AnyGone() && t.unforeseen() == nil }

// farewellLook is how often Farewell looks for deaths that nobody has gone on without, and Survivors for members that close their worlds.
const farewellLook = 50 * time.Millisecond

// answerLook is how often who has asked a member looks for the answer.
const answerLook = 20 * time.Microsecond

// MeetToClose is the barrier of all members that close their worlds. It is for the composition root.
func (t *Team) MeetToClose(ctx context.Context) error {
	const op = "close"
	if t.core.running.owed.Load() != 0 {
		return transport.NewOpError(op, -1, errCountedOn)
	}
	t.closing(ctx, op)
	err := t.Meet(ctx, op, 0)
	if err != nil {
		t.local.Word64(closingWord).Store(0) // it leaves alone, or calls Farewell
	}
	return err
}

// closing tells the others that this member closes its world, t being that of all ranks, when what it has done for them before is at their memory. It is not told
// where somebody is gone, or ctx has ended: what is waited for next finds that, too.
func (t *Team) closing(ctx context.Context, op string) {
	if t.e.Land(ctx, op) == nil {
		t.local.Word64(closingWord).Store(1)
	}
}

// errCloses ends calls of Survivors.
var errCloses = fmt.Errorf("%w: another member closes its world", ErrMismatch)

// closes returns an error if a member closes its world, and so comes to no agreement of survivors. Where ranks are gone who closes his comes to those of the
// world's team, or is gone himself soon. Who was stopped does not answer: it waits for that no longer than a look lasts, nor than ctx.
func (t *Team) closes(ctx context.Context) error {
	if t == t.core.running.world && t.e.Peers.AnyGone() {
		return nil
	}
	s, under := &t.core.surviving, false
	if s.asked == nil {
		s.asked = make([]parting, len(t.ranks))
	}
	for m, rank := range t.ranks {
		if m == t.me || t.e.Peers.Check(rank) != nil {
			continue
		}
		if s.asked[m].known(t, rank) {
			return errCloses
		}
		under = under || s.asked[m].under()
	}
	if !under {
		return nil
	}
	until, cancel := t.e.Sched.WithTimeout(ctx, farewellLook)
	defer cancel()
	for m, rank := range t.ranks {
		for p := &s.asked[m]; p.under(); {
			if p.known(t, rank) {
				return errCloses
			}
			if p.under() && t.e.Sched.Sleep(until, answerLook) != nil { // a wait would spin before it looks at until
				break
			}
		}
	}
	return nil
}

// closed reports whether a rank closes its world: it has come to the end of all its other calls.
func (t *Team) closed(rank int) bool {
	word, err := t.e.Load64(&t.core.running.world.peers[rank], closingWord)
	return err == nil && word != 0 // an error is one of its death
}

// parting is the question of a wait whether a rank closes its world. It takes no time of its own: who is asked may have been stopped.
type parting struct {
	word *[1]uint64 // where the answer comes; nil: nobody was asked
	h    proto.Handle
}

// under reports whether an answer is on its way.
func (p *parting) under() bool { return p.word != nil }

// known asks, unless that has been done, and reports whether the rank is known to close its world.
func (p *parting) known(t *Team, rank int) bool {
	r := &t.core.running.world.peers[rank]
	switch {
	case r.Mapped.Bytes != 0:
		return t.closed(rank)
	case p.word == nil:
		word := new([1]uint64)
		if h, err := t.e.GetNB(r, closingWord, mem.Of(word[:])); err == nil {
			p.word, p.h = word, h
		}
		return false
	case !p.h.Done():
		return false
	}
	closes := p.h.Wait(context.Background()) == nil && p.word[0] != 0
	p.word = nil
	return closes
}

// Parting begins to ask whether ranks close their worlds. What it returns waits for nothing, and is called again and again, by one goroutine at a time: it returns an error
// wrapping transport.ErrPeerGone once that is known of a rank. What that one has told others before is there by then. It is for the layers above.
func (t *Team) Parting() (closes func(rank int) error) {
	asked := map[int]*parting{} // answers may be on their way
	return func(rank int) error {
		p := asked[rank]
		if p == nil {
			p = new(parting)
			asked[rank] = p
		}
		if !p.known(t, rank) {
			return nil
		}
		return &peers.Gone{Rank: rank, How: "closes its world"}
	}
}

// Farewell waits until all members who live have called it: to each other they have not ended before. It is the end of a program of which GoesOn
// is true. A death that the program has not gone on without ends it with an error, as it ends all other waits.
//
// It takes two agreements. Who has come through the first one knows who has come here, as all others do; ends from then on are no news, but
// that work was done and its rank has left. Ranks leave after the second one, which nobody comes through before all have come through the first.
//
// Who has left Survivors, and has not called it again, may find the others on the way to a team that it is in, or have had its part in that agreed already. They would wait for it,
// so it takes no leave: it gets an error, and is gone for them.
func (t *Team) Farewell(ctx context.Context) error {
	const op = "close"
	t.closing(ctx, op)
	here, err := t.gather(ctx)
	if err == nil {
		err = t.missed(here)
	}
	if err == nil {
		_, err = t.core.table.Agree(ctx, false)
	}
	return t.waitError(op, -1, err)
}

// errCountedOn: the others go on with this rank.
var errCountedOn = fmt.Errorf("%w: a call of Survivors was left before its end and not made again, and the others count on this rank", ErrState)

// gather agrees on who has called Farewell.
func (t *Team) gather(ctx context.Context) (agree.Verdict, error) {
	if t.core.running.owed.Load() != 0 {
		return agree.Verdict{}, errCountedOn
	}
	if here := t.core.surviving.closing; here != nil { // the others do not come to another one
		return *here, nil
	}
	// Who is gone is in no agreement, perhaps, and may keep others from coming here. Who makes a team of survivors meanwhile votes yes, and sees that it has come too late.
	here, err := t.agree(ctx, false, t.unforeseen)
	if err == nil && here.Vote { // all are in Survivors, where this rank has been when they agreed
		err = errCountedOn
	}
	return here, err
}

// agree is an agreement of the members that live, unless another look, before it and every so often, finds why there will be none.
func (t *Team) agree(ctx context.Context, vote bool, look func() error) (agree.Verdict, error) {
	for {
		if err := look(); err != nil {
			return agree.Verdict{}, err
		}
		until, cancel := t.e.Sched.WithTimeout(ctx, farewellLook)
		v, err := t.core.table.Agree(until, vote)
		ended := err != nil && until.Err() != nil
		cancel()
		if !ended {
			return v, err
		}
		if err := sched.Ended(ctx); err != nil {
			return v, err
		}
	}
}

// missed returns the error of a member without which the program has not gone on, and which is not here: the same for all.
func (t *Team) missed(here agree.Verdict) error {
	if !here.Has(t.me) {
		return agree.ErrTakenForGone
	}
	for m, rank := range t.ranks {
		if here.Has(m) || t.core.running.foreseen(rank) {
			continue
		}
		return t.foundGone(rank)
	}
	return nil
}
