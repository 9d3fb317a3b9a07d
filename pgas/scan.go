package pgas

import (
	"context"

	"gopgas/internal/atom"
	pgsync "gopgas/sync"
	"gopgas/transport"
)

// Scan sets every element of a to what op combines all elements up to and with it to, in the order of their indices, whatever the layout: an inclusive prefix (Blelloch 1990; Global Arrays:
// GA_Scan_add). Integers wrap around. Of floating-point numbers a member's share is combined by itself first, and with those before it then, so sums depend on the number of members, and
// not on the layout if that is dealt out. Collective; it is a Fence before and after. Of a layout that is dealt out each member takes room for its share.
//
// Shares are the members' own ranges, or else as many as there are members. A member combines those of its own, tells the others what they are together, and
// combines each once more with what comes before.
func Scan[T pgsync.Number](ctx context.Context, a *Array[T], op pgsync.Op) error {
	const name = "scan"
	kind, t := atom.ElemOf[T](), a.Team()
	if err := reduces(kind, op); err != nil {
		return t.Refuse(ctx, name, transport.NewOpError(name, -1, err))
	}
	if err := a.Fence(ctx); err != nil {
		return t.Abandon(name, err)
	}
	mine, own := a.d, a.Local()
	if a.d.dealt() {
		mine = newDist(Block(), a.d.n, a.d.p)
		own = make([]T, mine.count(t.Rank()))
		if err := a.Get(mine.first(t.Rank()), own); err != nil {
			return t.Abandon(name, err)
		}
	}
	var sum partial[T]
	err := prefixes(ctx, own, func(v T) T {
		sum.add(kind, op, v)
		return sum.Value
	})
	if err != nil {
		return t.Abandon(name, err)
	}
	all, err := gathered(ctx, name, t, op, sum)
	if err != nil {
		return err
	}
	var before partial[T]
	for _, p := range all[:t.Rank()] {
		before.join(kind, op, p)
	}
	if before.Any {
		err = prefixes(ctx, own, func(v T) T { return combine(kind, op, before.Value, v) })
	}
	if err == nil && a.d.dealt() { // what nobody else has read, or will
		err = a.Put(mine.first(t.Rank()), own)
	}
	if err == nil {
		err = a.Fence(ctx)
	}
	return t.Abandon(name, err)
}

// prefixes sets all elements to f of them, in order, until ctx ends.
func prefixes[T any](ctx context.Context, s []T, f func(v T) T) error {
	return inPieces(ctx, len(s), func(lo, n int) error {
		for i := lo; i < lo+n; i++ {
			s[i] = f(s[i])
		}
		return nil
	})
}
