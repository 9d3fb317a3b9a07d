package pgsync

import (
	"context"
	"fmt"
	"time"

	"gopgas/internal/agree"
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

// farewellLook is how often Farewell looks for deaths that nobody has gone on without.
const farewellLook = 50 * time.Millisecond

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
	if t.core.surviving.left != nil {
		return agree.Verdict{}, errCountedOn
	}
	if here := t.core.surviving.closing; here != nil { // the others do not come to another one
		return *here, nil
	}
	for {
		if err := t.unforeseen(); err != nil { // it is in no agreement, perhaps, and may keep others from coming here
			return agree.Verdict{}, err
		}
		look, cancel := t.e.Sched.WithTimeout(ctx, farewellLook)
		here, err := t.core.table.Agree(look, false) // who makes a team of survivors meanwhile votes yes, and sees that it has come too late
		again := err != nil && look.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil && here.Vote { // all are in Survivors, where this rank has been when they agreed
			err = errCountedOn
		}
		if !again {
			return here, err
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
