package pgsync

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gopgas/internal/mem"
	"gopgas/internal/peers"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// spoil makes the team unusable for collectives because of err, which has ended op on this rank before its end. The others may wait for
// what this member will not do any more, so they are told, unless they learn it anyway: of members that disagree or are gone.
func (t *Team) spoil(op string, err error) {
	t.core.fail(err)
	if !known(err) {
		t.tell(abandonWord, t.left(op))
	}
}

// known reports whether the others have err as well, or learn of it by themselves.
func known(err error) bool {
	for _, k := range []error{ErrMismatch, ErrAbandoned, transport.ErrPeerGone, transport.ErrClosed} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// Abandon tells the other members that this one leaves op, a collective call that is made of several, because of err; nil: it does not. They would wait for its next part, or
// take this member's next call for that, so all get ErrAbandoned, as where a data collective is left. It is told also where the last part was left, since nobody
// outside can tell which it was. It returns err. It is for the layers above; op is listed in the table of kinds.
func (t *Team) Abandon(op string, err error) error {
	if err != nil && len(t.ranks) > 1 && !known(err) { // what the others know this member finds again in its next call
		t.spoil(op, err)
	}
	return err
}

// unentered is Abandon of a call that enter has not let in: where its context has ended behind another call of this rank, it has no number, and the others, who come to it, would take this
// member's next call for it.
func (t *Team) unentered(ctx context.Context, op string, err error) error {
	if ended := sched.Ended(ctx); ended == nil || !errors.Is(err, ended) {
		return err
	}
	return t.Abandon(op, err)
}

// AbandonMade is Abandon of op, for which something was made that free, a collective, gives back. Other members may use it yet, and so the team has it; who is alone
// gives it back, and waits for what is under way there, which is this rank's own: ctx may have ended.
func (t *Team) AbandonMade(ctx context.Context, op string, err error, free func(context.Context) error) error {
	if err != nil && len(t.ranks) == 1 {
		if ctx != nil {
			ctx = context.WithoutCancel(ctx)
		}
		_ = free(ctx) // err is why
	}
	return t.Abandon(op, err)
}

// AbandonEnd is Abandon for a last part of op that gives memory back: where ctx has ended while it met the others, this member's next call brings it to its end, and there is
// nothing to tell. What comes behind the meeting is this member's own.
func (t *Team) AbandonEnd(ctx context.Context, op string, err error) error {
	if ended := sched.Ended(ctx); ended == nil || !errors.Is(err, ended) || t.meeting() {
		return err
	}
	return t.Abandon(op, err)
}

// errUnreturned: a panic, or runtime.Goexit, has left a call.
var errUnreturned = errors.New("a function of the program that it called did not return")

// Guard returns what part does, which is of op and calls functions of the program. Where one of these panics or ends its goroutine, and part does not return, this member
// has left op, and Guard is Abandon. It is for the layers above.
func (t *Team) Guard(op string, part func() error) (err error) {
	returned := false
	defer func() {
		if !returned {
			_ = t.Abandon(op, transport.NewOpError(op, -1, errUnreturned))
		}
	}()
	err = part()
	returned = true
	return err
}

// meeting reports whether this member has left a barrier that its next call goes on with.
func (t *Team) meeting() bool {
	if !t.busy.CompareAndSwap(0, 1) {
		return true // another goroutine is in a collective, and goes on with it
	}
	defer mem.Publish32(&t.busy, 0)
	return t.pending
}

// forsake is spoil by a started call, whose function has returned err. That may be of anything, such as a window or another team, so it is no sign of what the
// others know, whatever it wraps.
func (t *Team) forsake(err error) {
	heard := t.doomed()
	t.core.fail(err)
	if !heard {
		t.tell(abandonWord, t.left(""))
	}
}

// doomed reports whether this member knows of a reason why the team's collectives end, which the others have learned, or will.
func (t *Team) doomed() bool {
	return t.core.failure() != nil || (*together)(t).Interrupted() != nil
}

// left is what abandonWord says when this member has left op.
func (t *Team) left(op string) uint64 {
	return uint64(t.me+1)<<8 | uint64(slices.Index(kinds[:], op)+1)
}

// bereft is what it says besides when this member has left since another one is gone: the others may not know of that yet, and it is what has ended their calls.
func (t *Team) bereft(err error) uint64 {
	rank, gone, failed := -1, (*peers.Gone)(nil), (*transport.OpError)(nil)
	switch {
	case !errors.Is(err, transport.ErrPeerGone):
	case errors.As(err, &gone):
		rank = gone.Rank
	case errors.As(err, &failed):
		rank = failed.Rank
	}
	return uint64(slices.Index(t.ranks, rank)+1) << goneShift
}

// goneShift is where in abandonWord the member stands that is gone.
const goneShift = 36

// tell writes word at off of all members' control blocks, this one's too, unless something was written here before.
func (t *Team) tell(off int, word uint64) {
	if t.local.Word64(off).CompareAndSwap(0, word) {
		t.spread(off, word)
	}
}

// spread writes word at off of all other members' control blocks, whatever is there, and returns when it is there.
func (t *Team) spread(off int, word uint64) {
	t.e.Sched.Ring() // calls of this rank on other lanes
	for m := range t.peers {
		if m == t.me {
			continue
		}
		// A member that is gone needs no news; the others' errors are told by their own calls.
		if t.e.Store64(&t.peers[m], off, word) == nil {
			_ = t.e.Flush(&t.peers[m])
		}
	}
}

// abandoned returns an error that names the member that has left a collective before its end, or the one that is gone, because of which that was; or nil.
func (t *Team) abandoned() error {
	if err := t.unmade(); err != nil {
		return err
	}
	word := t.local.Word64(abandonWord).Load()
	if word == 0 {
		return nil
	}
	if gone := int(word>>goneShift) - 1; gone >= 0 && gone < len(t.ranks) && gone != t.me {
		return t.foundGone(t.ranks[gone])
	}
	what, member := "a started call", int(word>>8&(1<<(goneShift-8)-1))-1
	if kind := int(word&0xff) - 1; kind >= 0 && kind < len(kinds) {
		what = kinds[kind]
	}
	if member < 0 || member >= len(t.ranks) {
		return ErrAbandoned
	}
	return fmt.Errorf("%w: rank %d left %s before its end", ErrAbandoned, t.ranks[member], what)
}

// foundGone is the error of a rank that another one has found to be gone.
func (t *Team) foundGone(rank int) error {
	if err := t.e.Peers.Check(rank); err != nil {
		return err
	}
	return &peers.Gone{Rank: rank, How: "has ended, as others have found"}
}

// together is a team as a watch of its collectives, which end when a member leaves one; other waits of a team do not.
type together Team

// Interrupted implements sched.Watch.
func (t *together) Interrupted() error {
	if err := (*Team)(t).Interrupted(); err != nil {
		return err
	}
	return (*Team)(t).abandoned()
}
