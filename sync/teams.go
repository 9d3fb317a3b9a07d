package pgsync

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"gopgas/internal/proto"
	"gopgas/internal/symheap"
	"gopgas/transport"
)

// Split divides the team by color: members that give the same color form a new team, ordered by key and then
// by rank. A negative color joins none and gets nil. Collective over t. Where it ends with an error on one member, because of its context or otherwise, others may have a new team that this
// member lacks: collectives of such a team end with ErrAbandoned, and Survivors of t makes one from which all can be made again.
func (t *Team) Split(ctx context.Context, color, key int) (*Team, error) {
	const mark, cardBytes = 2, 17 // lists of members begin with other marks
	mine := [cardBytes]byte{mark}
	binary.LittleEndian.PutUint64(mine[1:], uint64(color))
	binary.LittleEndian.PutUint64(mine[9:], uint64(key))
	cards, err := t.Exchange(ctx, mine[:])
	if err != nil {
		return nil, err
	}
	type entry struct{ key, member int }
	var same []entry
	for m, c := range cards {
		if len(c) != cardBytes || c[0] != mark {
			return nil, fmt.Errorf("split: member %d: %w", m, ErrMismatch)
		}
		if int(int64(binary.LittleEndian.Uint64(c[1:]))) == color {
			same = append(same, entry{int(int64(binary.LittleEndian.Uint64(c[9:]))), m})
		}
	}
	if color < 0 {
		same = nil
	}
	slices.SortFunc(same, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.member, b.member))
	})
	members := make([]int, len(same))
	for i, s := range same {
		members[i] = s.member
	}
	return t.form(ctx, members)
}

// SplitNode returns the team of t's members on this rank's node, in t's order. Collective over t.
func (t *Team) SplitNode(ctx context.Context) (*Team, error) {
	return t.Split(ctx, t.e.Nodes[t.e.Rank], t.me)
}

// Sub returns the team of the given members of t, in that order; who is not among them gets nil. Collective over t: all
// give the same list, else all get an error.
func (t *Team) Sub(ctx context.Context, members []int) (*Team, error) {
	return t.sub(ctx, members, t.checkList(members))
}

// sub is Sub of members that cannot be a team where there is a refusal.
func (t *Team) sub(ctx context.Context, members []int, refusal error) (*Team, error) {
	const op = "sub-team"
	list := []byte{1}
	for _, m := range members {
		list = binary.AppendVarint(list, int64(m))
	}
	if refusal != nil {
		list = []byte{0}
	}
	lists, err := t.Exchange(ctx, list)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return nil, transport.NewOpError(op, -1, refusal)
	}
	for m, theirs := range lists {
		if !slices.Equal(theirs, list) {
			return nil, transport.NewOpError(op, t.ranks[m], fmt.Errorf("%w: rank %d gives other members than this rank, or none that can be",
				ErrMismatch, t.ranks[m]))
		}
	}
	return t.form(ctx, slices.Clone(members))
}

// checkList refuses lists that no team can have.
func (t *Team) checkList(members []int) error {
	seen := make([]bool, t.Size())
	for _, m := range members {
		if m < 0 || m >= t.Size() {
			return fmt.Errorf("%w: member %d of a team of %d", ErrMember, m, t.Size())
		}
		if seen[m] {
			return fmt.Errorf("%w: member %d stands twice in the list", ErrMember, m)
		}
		seen[m] = true
	}
	return nil
}

// Strided returns the team of n members of t: first, first+stride, first+2·stride, and so on; stride may be negative.
// Who is not among them gets nil. Collective over t: all give the same numbers, else all get an error.
func (t *Team) Strided(ctx context.Context, first, stride, n int) (*Team, error) {
	if n < 0 {
		return t.sub(ctx, nil, fmt.Errorf("%w: %d members", ErrMember, n))
	}
	// A list that is too long is refused with the same words whatever its length.
	members := make([]int, min(n, t.Size()+1))
	for i := range members {
		members[i] = first + i*stride
	}
	return t.Sub(ctx, members)
}

// form makes the team of members, which all members of t agree on.
func (t *Team) form(ctx context.Context, members []int) (*Team, error) {
	// All members of t take part in the two exchanges of an allocation, whatever team they land in.
	x := &subset{members, origin{of: t}}
	me := slices.Index(members, t.me)
	if me < 0 {
		for range 2 {
			if _, err := x.Exchange(ctx, nil); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	nt, err := t.found(ctx, x, members, me)
	if err == nil {
		nt.core.origin.Store(&x.origin)
	}
	return nt, err
}

// found makes a team over x, in which this member is number me.
func (t *Team) found(ctx context.Context, x proto.Exchanger, members []int, me int) (*Team, error) {
	ranks := make([]int, len(members))
	for i, m := range members {
		ranks[i] = t.ranks[m]
	}
	return newTeam(ctx, t.e, symheap.New(t.e, x, ranks, me), ranks, me, t.core.running, t.races)
}

// Free gives the team's memory back. Collective; the team cannot be used afterwards. It waits for calls that this rank has
// started on the team. If ctx ends before the others have come it is called again, before any other collective call.
func (t *Team) Free(ctx context.Context) error {
	const op = "free"
	if err := t.Drain(ctx); err != nil {
		return err
	}
	if t.core.lanes[0].board != nil { // races are looked for, and no Free that ctx has ended has come further
		if err := t.meet(ctx, op, callOf(op, 0, 0, 0)); err != nil {
			return err
		}
		for i := range t.core.lanes {
			t.core.lanes[i].board = nil // the others may still be reading them
		}
	}
	if err := t.meet(ctx, op, callOf(op, 0, 0, 0)); err != nil {
		return err
	}
	if t.core.free() {
		return nil
	}
	return errors.Join(t.unfurnish(), t.heap.Close())
}
