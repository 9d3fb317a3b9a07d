package pgsync

import (
	"errors"
	"fmt"
	"slices"

	"gopgas/transport"
)

// spoil makes the team unusable for collectives because of err, which has ended op on this rank before its end. The others may wait for
// what this member will not do any more, so they are told, unless they learn it anyway: of members that disagree or are gone.
func (t *Team) spoil(op string, err error) {
	t.core.fail(err)
	for _, known := range []error{ErrMismatch, ErrAbandoned, transport.ErrPeerGone, transport.ErrClosed} {
		if errors.Is(err, known) {
			return
		}
	}
	t.tell(abandonWord, t.left(op))
}

// forsake is spoil by a started call, whose function has returned err. That may be of anything, such as a window or another team, so it is no sign of what the
// others know, whatever it wraps.
func (t *Team) forsake(err error) {
	known := t.core.failure() != nil || (*together)(t).Interrupted() != nil
	t.core.fail(err)
	if !known {
		t.tell(abandonWord, t.left(""))
	}
}

// left is what abandonWord says when this member has left op.
func (t *Team) left(op string) uint64 {
	return uint64(t.me+1)<<8 | uint64(slices.Index(kinds[:], op)+1)
}

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

// abandoned returns an error that names the member that has left a collective before its end, or nil.
func (t *Team) abandoned() error {
	word := t.local.Word64(abandonWord).Load()
	if word == 0 {
		return nil
	}
	what, member := "a started call", int(word>>8)-1
	if kind := int(word&0xff) - 1; kind >= 0 && kind < len(kinds) {
		what = kinds[kind]
	}
	if member < 0 || member >= len(t.ranks) {
		return ErrAbandoned
	}
	return fmt.Errorf("%w: rank %d left %s before its end", ErrAbandoned, t.ranks[member], what)
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
