package pgsync

import (
	"context"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// A gather is a turn in which every member gets a slot of bytes from every member in log2 n steps (Bruck et al. 1997),
// on the rounds of the barrier that the turn is made of. A member's outbox begins with its own slot; behind it come
// those of the members before it, in descending order. After round k it holds 2^(k+1) of them: its own 2^k, and as many
// that it has read from the member 2^k before it. What has been written is not changed any more, so a late reader
// finds it.

// largestSlot bounds what one gather moves for each member. More would be read by nobody who could not read it from
// its owner at once.
const largestSlot = 512

// leastSlot is the smallest slot there may be: the outboxes grow with the team so that one gather has room for it.
const leastSlot = 64

// slotBytes is the slot for which the outboxes of a team of n have room.
func slotBytes(n int) int { return min(boxPayload(n)/n&^7, largestSlot) }

// gather gives every member's mine, of equal lengths that slotBytes allows, to all: member m's is all[m*len(mine):].
// When the members do not make the same call, all of them learn of it.
func (t *Team) gather(ctx context.Context, c call, mine, all []byte) error {
	n, s := len(t.ranks), len(mine)
	off := t.outbox()
	slots := t.local.Slice(off+outboxHeader, n*s)
	word := t.local.Word64(off)
	copy(slots.Data(), mine)
	word.Store(uint64(c))
	t.round++
	err := t.disseminate(ctx, c.name(), uint64(c), func(from, dist int) error {
		theirs, err := t.e.Load64(&t.peers[from], off)
		if err != nil {
			return err
		}
		if call(theirs) != c {
			return t.mismatch(c, from, call(theirs))
		}
		return t.e.Fetch(&t.peers[from], off+outboxHeader, slots.Slice(dist*s, min(dist, n-dist)*s))
	})
	if err != nil {
		return err
	}
	have := slots.Data()
	for i := range n {
		m := t.me - i
		if m < 0 {
			m += n
		}
		copy(all[m*s:(m+1)*s], have[i*s:])
	}
	return nil
}

// mismatch is the error of a member that makes call c and has found theirs in the outbox of another.
func (t *Team) mismatch(c call, from int, theirs call) error {
	return transport.NewOpError(c.name(), t.ranks[from], fmt.Errorf("%w: this rank is in a %s, rank %d in a %s",
		ErrMismatch, c, t.ranks[from], theirs))
}

// gathers reports whether a collective of so many bytes for each member is made by a gather: where few members, or
// long data, are better read from their owners.
func (t *Team) gathers(bytes int) bool { return len(t.ranks) > 8 && bytes <= slotBytes(len(t.ranks)) }

// gatherAll is gather of elements: dst has room for all members' src.
func gatherAll[T any](ctx context.Context, t *Team, c call, dst, src []T) error {
	return t.gather(ctx, c, mem.Of(src).Data(), mem.Of(dst).Data())
}
