package pgsync

import (
	"context"
	"fmt"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// Reduce combines the members' src element by element into root's dst, in the order of ranks; dst is not looked
// at elsewhere. dst and src may be the same slice. Collective. Up to 8 KiB among up to 8 members root reads all src after one
// barrier; else there are two barriers for each outbox-full, and members read n parts each. Short integers of members that share nodes
// are combined there first, in one barrier.
func Reduce[T Number](ctx context.Context, t *Team, dst, src []T, op Op, root int) error {
	if err := checkData[T](t, "reduce", root); err != nil {
		return t.Refuse(ctx, "reduce", err)
	}
	return reduce(ctx, t, "reduce", dst, src, op, root)
}

// AllReduce is Reduce with the result, bit by bit the same, on every member. Collective. Short ones in teams of more than
// 8 take one barrier with ceil(log2 n) reads; others are as Reduce, and where 4 members or more share a node, long ones take a barrier or two more
// and each node reads what comes from others once.
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
	r := reduction[T]{c: c, what: callOf(name, atom.ElemOf[T]().Code(), int(op), len(src)), op: op, root: root, want: want}
	if c.slim(len(src) * mem.SizeOf[T]()) {
		return c.End(r.slips(ctx, dst, src))
	}
	how := choose(t.query(name, len(src)*mem.SizeOf[T](), exact[T]()))
	switch how {
	case gathered:
		return c.End(r.gathered(ctx, dst, src))
	case doubled:
		return c.End(c.combine(ctx, r.what, root, mem.Of(dst), mem.Of(src), r.fold))
	}
	if err := c.widen(ctx, r.what, len(src)*mem.SizeOf[T]()); err != nil {
		return c.End(err)
	}
	return c.End(rounds(len(src), mem.SizeOf[T](), c.Payload(), func(lo, hi int) error {
		var part []T
		if want {
			part = dst[lo:hi]
		}
		switch how {
		case segmented:
			return r.segmented(ctx, part, src[lo:hi])
		case nodal:
			return r.nodal(ctx, part, src[lo:hi])
		}
		return r.direct(ctx, part, src[lo:hi])
	}))
}

// exact reports whether elements combine to the same bits in any order: integers do, whose quotients have no fraction.
func exact[T Number]() bool { return T(1)/T(2) == 0 }

// reduction is a Reduce or AllReduce while it goes on.
type reduction[T Number] struct {
	c      *turns
	what   call
	op     Op
	root   int
	want   bool   // the result here
	others []byte // what of others must be fetched
}

// fold combines from into another range.
func (r *reduction[T]) fold(into, from mem.Range) {
	atom.Fold(r.op, mem.Slice[T](into), mem.Slice[T](from))
}

// slips has every member hand its elements to all others.
func (r *reduction[T]) slips(ctx context.Context, dst, src []T) error {
	c, mine := r.c, mem.Of(src)
	if err := c.hand(ctx, r.what, r.root, mine, mine.Bytes, 0); err != nil || !r.want {
		return err
	}
	sum, theirs := mem.Of(c.t.slip.sum[:]).Slice(0, mine.Bytes), mem.Of(c.t.slip.theirs[:]).Slice(0, mine.Bytes)
	for m := range c.t.ranks {
		from, into := src, theirs
		if m == 0 {
			into = sum
		}
		if m != c.t.me {
			if err := c.Slip(m, into); err != nil {
				return err
			}
			from = mem.Slice[T](into)
		}
		if m == 0 {
			copy(mem.Slice[T](sum), from)
		} else {
			atom.Fold(r.op, mem.Slice[T](sum), from)
		}
	}
	copy(dst, mem.Slice[T](sum)) // may be src
	return nil
}

// gathered has every member get all members' elements and combine them.
func (r *reduction[T]) gathered(ctx context.Context, dst, src []T) error {
	n := len(src)
	all := make([]T, n*r.c.t.Size())
	if err := r.c.gather(ctx, r.what, everyone, mem.Of(src).Data(), mem.Of(all).Data()); err != nil {
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
	return r.combine(dst, 0, r.c.Everybody())
}

// segmented has each member combine a part, and whoever wants the result read the parts.
func (r *reduction[T]) segmented(ctx context.Context, dst, src []T) error {
	c, n, width := r.c, r.c.t.Size(), mem.SizeOf[T]()
	c.Write(0, mem.Of(src))
	if err := c.turn(ctx, r.what, r.root, visitor{}); err != nil {
		return err
	}
	lo, hi := segment(len(src), n, c.t.me)
	sum := mem.Slice[T](c.Box(0, (hi-lo)*width))
	if err := r.combine(sum, lo, c.Everybody()); err != nil {
		return err
	}
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

// combine makes dst the combination of what the outboxes of the members of hold from element lo on, in their order.
func (r *reduction[T]) combine(dst []T, lo int, of []int) error {
	if len(dst) == 0 {
		return nil
	}
	off, bytes, some := lo*mem.SizeOf[T](), len(dst)*mem.SizeOf[T](), false
	return r.c.SeeEach(off, bytes, of, &r.others, func(_ int, theirs mem.Range) {
		if some {
			atom.Fold(r.op, dst, mem.Slice[T](theirs))
		} else {
			copy(dst, mem.Slice[T](theirs))
		}
		some = true
	})
}

// Everybody are all members in the order of ranks.
func (c *turns) Everybody() []int { return c.t.all }
