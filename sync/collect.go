package pgsync

import (
	"context"
	"fmt"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/racecheck"
	"gopgas/internal/shape"
	"gopgas/transport"
)

// Op is how elements are combined, by reductions and by window.Accumulate.
type Op = atom.Op

// The operations. And, Or, Xor are for integers only; Replace is for Accumulate only.
const (
	Sum     = atom.Sum
	Prod    = atom.Prod
	Min     = atom.Min
	Max     = atom.Max
	And     = atom.And
	Or      = atom.Or
	Xor     = atom.Xor
	Replace = atom.Replace
)

// Number is what can be reduced.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// rounds calls f for each piece of n elements of elemBytes that fits in payload bytes; at least once, so that empty
// collectives still synchronise.
func rounds(n, elemBytes, payload int, f func(lo, hi int) error) error {
	step := payload / elemBytes
	for lo := 0; ; lo += step {
		if err := f(lo, min(lo+step, n)); err != nil {
			return err
		}
		if lo+step >= n {
			return nil
		}
	}
}

// checkData verifies what every data collective needs of its arguments, before anything moves.
func checkData[T any](t *Team, op string, root int) error {
	if err := mem.CheckElem[T](); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	if root < 0 || root >= t.Size() {
		return transport.NewOpError(op, root, fmt.Errorf("%w: root %d of a team of %d", ErrMember, root, t.Size()))
	}
	return nil
}

// plain returns memory that a collective was given as the library uses it: unseen by the race check.
func plain[T any](t *Team, s []T) []T { return racecheck.Plain(t.races, s) }

// Broadcast copies root's buf to every member's buf, which has the same length everywhere. Collective. For each
// outbox-full (16 KiB) it takes a barrier; among up to 8 members all read from the root, in larger teams each from one that
// has the bytes already, in ceil(log2 n) steps; on a node only one member reads from another node.
func Broadcast[T any](ctx context.Context, t *Team, buf []T, root int) error {
	const op = "broadcast"
	if err := checkData[T](t, op, root); err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.begin(ctx, op)
	if err != nil {
		return err
	}
	how := choose(op, t.Size(), len(buf)*mem.SizeOf[T](), c.Slot(), t.shape.Levels())
	buf = plain(t, buf)
	whole, what := mem.Of(buf), callOf(op, mem.SizeOf[T](), 0, len(buf))
	return c.End(rounds(whole.Bytes, 1, c.Payload(), func(lo, hi int) error {
		if part := whole.Slice(lo, hi-lo); how == relayed {
			return c.relay(ctx, what, part, root)
		} else {
			return c.cast(ctx, what, part, root)
		}
	}))
}

// cast is a turn in which all read from the root.
func (c *turns) cast(ctx context.Context, what call, part mem.Range, root int) error {
	if c.t.me == root {
		c.Write(0, part)
	}
	if err := c.turn(ctx, what, root, visitor{}); err != nil || c.t.me == root {
		return err
	}
	return c.Read(root, 0, part)
}

// relay is a turn in which root's bytes go from outbox to outbox. In the round in which a member hears from the one dist
// places before it, that one has them if it lies less than dist places behind the root.
func (c *turns) relay(ctx context.Context, what call, part mem.Range, root int) error {
	t := c.t
	if t.me == root {
		c.Write(0, part)
	}
	mine := c.Box(0, part.Bytes)
	home := t.shape.NodeOf(root) // in a flat team the only one
	have := t.me == root
	take := func(from int) error { have = true; return c.Read(from, 0, mine) }
	v := visitor{
		begin: func(p *shape.Phase) error {
			if p.Area == shape.Leaders && home == t.shape.Mine && !have {
				return take(root) // the root's node has met, so the root has written
			}
			return nil
		},
		heard: func(p *shape.Phase, from, dist int) error {
			origin := -1
			switch {
			case p.Area == shape.Leaders:
				origin = home
			case !t.shape.Levels():
				origin = root
			}
			if far := shape.Behind(p.Me, origin, len(p.Members)); origin >= 0 && far >= dist && far < 2*dist {
				return take(from)
			}
			return nil
		},
	}
	if err := c.turn(ctx, what, root, v); err != nil || t.me == root {
		return err
	}
	if !have { // some member of a node, not the first: that one has them
		return c.Read(t.shape.Leader(), 0, part)
	}
	copy(part.Data(), mine.Data())
	return nil
}

// AllGather concatenates every member's src, in the order of ranks, into every member's dst. All src have the
// same length, and dst has Size times that; otherwise all members get an error. Collective. Short ones in teams of more than 8
// take one barrier with ceil(log2 n) reads; others a barrier and n-1 reads for each outbox-full (16 KiB) of src.
func AllGather[T any](ctx context.Context, t *Team, dst, src []T) error {
	const op = "allgather"
	err := checkData[T](t, op, 0)
	if err == nil && len(dst) != len(src)*t.Size() {
		err = transport.NewOpError(op, -1, fmt.Errorf("%w: dst has %d elements, needs %d (%d members of %d)",
			ErrMismatch, len(dst), len(src)*t.Size(), t.Size(), len(src)))
	}
	if err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.begin(ctx, op)
	if err != nil {
		return err
	}
	dst, src = plain(t, dst), plain(t, src)
	all, mine, what := mem.Of(dst), mem.Of(src), callOf(op, mem.SizeOf[T](), 0, len(src))
	if choose(op, t.Size(), mine.Bytes, c.Slot(), t.shape.Levels()) == gathered {
		return c.End(c.gather(ctx, what, mine.Data(), all.Data()))
	}
	return c.End(rounds(mine.Bytes, 1, c.Payload(), func(lo, hi int) error {
		c.Write(0, mine.Slice(lo, hi-lo))
		if err := c.turn(ctx, what, 0, visitor{}); err != nil {
			return err
		}
		return c.ReadAll(all, func(m int) (from, to, bytes int) { return 0, m*mine.Bytes + lo, hi - lo })
	}))
}

// Reduce combines the members' src element by element into root's dst, in the order of ranks; dst is not looked
// at elsewhere. dst and src may be the same slice. Collective. Up to 8 KiB among up to 8 members root reads all src after one
// barrier; else there are two barriers for each outbox-full, and members read n parts each.
func Reduce[T Number](ctx context.Context, t *Team, dst, src []T, op Op, root int) error {
	if err := checkData[T](t, "reduce", root); err != nil {
		return t.Refuse(ctx, "reduce", err)
	}
	return reduce(ctx, t, "reduce", dst, src, op, root)
}

// AllReduce is Reduce with the result, bit by bit the same, on every member. Collective. Short ones in teams of more than
// 8 take one barrier with ceil(log2 n) reads; others as Reduce.
func AllReduce[T Number](ctx context.Context, t *Team, dst, src []T, op Op) error {
	return reduce(ctx, t, "allreduce", dst, src, op, everyone)
}

// everyone is the root of a reduction whose result goes to all.
const everyone = -1

// CheckReduction returns an error where a reduction of dst and src by op is not possible. want says whether dst counts.
func (t *Team) CheckReduction(name string, kind atom.Elem, op Op, dst, src int, want bool) error {
	if want && dst != src {
		return transport.NewOpError(name, -1, fmt.Errorf("%w: dst has %d elements and src %d", ErrMismatch, dst, src))
	}
	if err := kind.Check(op); err != nil || op >= Replace {
		if err == nil {
			err = fmt.Errorf("%w: %s is not a reduction", atom.ErrUndefined, op)
		}
		return transport.NewOpError(name, -1, err)
	}
	return nil
}

func reduce[T Number](ctx context.Context, t *Team, name string, dst, src []T, op Op, root int) error {
	want := root == everyone || root == t.me
	if err := t.CheckReduction(name, atom.ElemOf[T](), op, len(dst), len(src), want); err != nil {
		return t.Refuse(ctx, name, err)
	}
	c, err := t.begin(ctx, name)
	if err != nil {
		return err
	}
	dst, src = plain(t, dst), plain(t, src)
	r := reduction[T]{c: c, what: callOf(name, mem.SizeOf[T](), int(op), len(src)), op: op, root: root, want: want}
	how := choose(name, t.Size(), len(src)*mem.SizeOf[T](), c.Slot(), t.shape.Levels())
	if how == gathered {
		return c.End(r.gathered(ctx, dst, src))
	}
	return c.End(rounds(len(src), mem.SizeOf[T](), c.Payload(), func(lo, hi int) error {
		var part []T
		if want {
			part = dst[lo:hi]
		}
		if how == segmented {
			return r.segmented(ctx, part, src[lo:hi])
		}
		return r.direct(ctx, part, src[lo:hi])
	}))
}

// reduction is a Reduce or AllReduce while it goes on.
type reduction[T Number] struct {
	c     *turns
	what  call
	op    Op
	root  int
	want  bool // the result here
	other []T  // a member's elements, where they must be fetched
}

// gathered has every member get all members' elements and combine them.
func (r *reduction[T]) gathered(ctx context.Context, dst, src []T) error {
	n := len(src)
	all := make([]T, n*r.c.t.Size())
	if err := r.c.gather(ctx, r.what, mem.Of(src).Data(), mem.Of(all).Data()); err != nil {
		return err
	}
	copy(dst, all[:n])
	for m := 1; m < r.c.t.Size(); m++ {
		atom.Fold(r.op, dst, all[m*n:(m+1)*n])
	}
	return nil
}

// direct has whoever wants the result read everybody's elements and combine them.
func (r *reduction[T]) direct(ctx context.Context, dst, src []T) error {
	r.c.Write(0, mem.Of(src))
	if err := r.c.turn(ctx, r.what, r.root, visitor{}); err != nil || !r.want {
		return err
	}
	return r.combine(dst, 0)
}

// segmented has each member combine a part, and whoever wants the result read the parts.
func (r *reduction[T]) segmented(ctx context.Context, dst, src []T) error {
	c, n, width := r.c, r.c.t.Size(), mem.SizeOf[T]()
	c.Write(0, mem.Of(src))
	if err := c.turn(ctx, r.what, r.root, visitor{}); err != nil {
		return err
	}
	lo, hi := segment(len(src), n, c.t.me)
	sum := make([]T, hi-lo)
	if err := r.combine(sum, lo); err != nil {
		return err
	}
	c.Write(0, mem.Of(sum))
	if err := c.turn(ctx, r.what, r.root, visitor{}); err != nil || !r.want {
		return err
	}
	return c.ReadAll(mem.Of(dst), func(m int) (from, to, bytes int) {
		lo, hi := segment(len(src), n, m)
		return 0, lo * width, (hi - lo) * width
	})
}

// segment is the part of n elements that is member m's of many.
func segment(n, many, m int) (lo, hi int) { return n * m / many, n * (m + 1) / many }

// combine makes dst the combination of what the members' outboxes hold from element lo on.
func (r *reduction[T]) combine(dst []T, lo int) error {
	if len(dst) == 0 {
		return nil
	}
	c, off, bytes := r.c, lo*mem.SizeOf[T](), len(dst)*mem.SizeOf[T]()
	if err := c.Read(0, off, mem.Of(dst)); err != nil {
		return err
	}
	for m := 1; m < c.t.Size(); m++ {
		if !c.Mapped(m) && len(r.other) < len(dst) {
			r.other = make([]T, len(dst))
		}
		from, err := c.See(m, off, bytes, mem.Of(r.other[:min(len(dst), len(r.other))]))
		if err != nil {
			return err
		}
		atom.Fold(r.op, dst, mem.Slice[T](from))
	}
	return nil
}
