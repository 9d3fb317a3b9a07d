package pgsync

import (
	"context"
	"fmt"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// Reduce combines the members' src element by element into root's dst, in the order of ranks; dst is not looked
// at elsewhere. dst and src may be the same slice, and share no memory otherwise. Collective. Up to 8 KiB among up to 8 members root reads all src after one
// barrier, or is pushed them over a NIC; else there are two barriers for each outbox-full, and members read n parts each; three in all for long ones whose memory is used again where none is mapped (two among two members up to 8 MiB), and for an AllReduce of library memory where all are, or of Go memory which the kernel copies as fast. Short integers of members that share nodes
// are combined there first, in one barrier. Where root reads or is pushed what fits into an outbox the others do not wait: it is no barrier.
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
	return t.reduce(ctx, name, atom.ElemOf[T](), mem.Of(dst), mem.Of(src), op, root)
}

func (t *Team) reduce(ctx context.Context, name string, elem atom.Elem, dst, src mem.Range, op Op, root int) error {
	want, n := root == everyone || root == t.me, src.Bytes/elem.Bytes
	if err := t.CheckReduction(name, elem, op, dst.Bytes/elem.Bytes, n, want); err != nil {
		return t.Refuse(ctx, name, err)
	}
	c, err := t.begin(ctx, name)
	if err != nil {
		return err
	}
	dst, src = t.races.PlainRange(dst), t.races.PlainRange(src)
	r := reduction{c: c, what: callOf(name, elem.Code(), int(op), n), elem: elem, exact: elem.Exact(), op: op, root: root, want: want}
	if c.slim(src.Bytes, false) {
		return c.End(r.slips(ctx, dst, src, 0, src.Bytes))
	}
	how := choose(t.query(name, src.Bytes, r.exact))
	switch how {
	case gathered:
		return c.End(r.gathered(ctx, dst, src))
	case doubled:
		return c.End(c.combine(ctx, r.what, root, dst, src, r.fold))
	}
	if done, err := r.offered(ctx, c.likely(how, false), dst, src); done || err != nil {
		return c.End(err)
	}
	if err := c.widen(ctx, r.what, src.Bytes); err != nil {
		return c.End(err)
	}
	return c.End(rounds(n, elem.Bytes, c.part(how, false), func(lo, hi int) error {
		lo, bytes := lo*elem.Bytes, (hi-lo)*elem.Bytes
		var part mem.Range
		if want {
			part = dst.Slice(lo, bytes)
		}
		switch how {
		case segmented:
			return r.segmented(ctx, part, src.Slice(lo, bytes))
		case nodal:
			return r.nodal(ctx, part, src.Slice(lo, bytes))
		case handed:
			return r.slips(ctx, part, src, lo, lo+bytes)
		}
		return r.direct(ctx, part, src, lo, lo+bytes)
	}))
}

// reduction is a Reduce or AllReduce while it goes on. It knows elements by what describes them, so that it is compiled once for all types.
type reduction struct {
	c      *turns
	what   call
	elem   atom.Elem
	exact  bool // elements combine to the same bits in any order: integers do
	op     Op
	root   int
	want   bool   // the result here
	others []byte // what of others must be fetched
}

// fold combines from into another range.
func (r *reduction) fold(into, from mem.Range) { atom.FoldRange(r.op, r.elem, into, from) }

// room is memory for n elements.
func (r *reduction) room(n int) mem.Range {
	bytes := n * r.elem.Bytes
	return mem.Of(make([]uint64, (bytes+7)/8)).Slice(0, bytes)
}

// slips has every member hand its elements in bytes lo to hi of src to all others.
func (r *reduction) slips(ctx context.Context, dst, src mem.Range, lo, hi int) error {
	c := r.c
	if err := c.handTo(ctx, r.what, r.root, src, lo, hi); err != nil || !r.want {
		return err
	}
	src = src.Slice(lo, hi-lo)
	sum := c.t.place(src.Bytes)
	for m := range c.t.ranks {
		from, err := src, error(nil)
		if m != c.t.me {
			from, err = c.handed(m, src.Bytes)
		}
		switch {
		case err != nil:
			return err
		case m > 0:
			r.fold(sum, from)
		case c.t.slip.pushed && c.t.me > 0:
			sum = from // in the inbox: until the turn after the next it is this member's
		default:
			mem.CopyRange(sum, from)
		}
	}
	mem.CopyRange(dst, sum) // may be src
	return nil
}

// gathered has every member get all members' elements and combine them.
func (r *reduction) gathered(ctx context.Context, dst, src mem.Range) error {
	all := r.room(src.Bytes / r.elem.Bytes * r.c.t.Size())
	if err := r.c.gather(ctx, r.what, everyone, src.Data(), all.Data()); err != nil {
		return err
	}
	copy(dst.Data(), all.Slice(0, src.Bytes).Data())
	for m := 1; m < r.c.t.Size(); m++ {
		r.fold(dst, all.Slice(m*src.Bytes, src.Bytes))
	}
	return nil
}

// direct has whoever wants the result read everybody's elements in bytes lo to hi of src and combine them.
func (r *reduction) direct(ctx context.Context, dst, src mem.Range, lo, hi int) error {
	r.c.Write(0, src.Slice(lo, hi-lo))
	if err := r.c.rootedTurn(ctx, r.what, r.root, hi, src.Bytes, false); err != nil || !r.want {
		return err
	}
	return r.combine(dst, 0, r.c.Everybody())
}

// segmented has each member combine a part, and whoever wants the result read the parts.
func (r *reduction) segmented(ctx context.Context, dst, src mem.Range) error {
	c, n, width := r.c, r.c.t.Size(), r.elem.Bytes
	c.Write(0, src)
	if err := c.turn(ctx, r.what, r.root, visitor{}); err != nil {
		return err
	}
	lo, hi := segment(src.Bytes/width, n, c.t.me)
	if err := r.combine(c.Box(0, (hi-lo)*width), lo, c.Everybody()); err != nil {
		return err
	}
	if err := c.turn(ctx, r.what, r.root, visitor{}); err != nil || !r.want {
		return err
	}
	return c.ReadAll(dst, func(m int) (from, to, bytes int) {
		lo, hi := segment(src.Bytes/width, n, m)
		return 0, lo * width, (hi - lo) * width
	})
}

// segment is the part of n elements that is member m's of many.
func segment(n, many, m int) (lo, hi int) { return n * m / many, n * (m + 1) / many }

// combine makes dst the combination of what the outboxes of the members of hold from element lo on, in their order.
func (r *reduction) combine(dst mem.Range, lo int, of []int) error {
	if dst.Bytes == 0 {
		return nil
	}
	some := false
	return r.c.SeeEach(lo*r.elem.Bytes, dst.Bytes, of, &r.others, func(_ int, theirs mem.Range) {
		if some {
			r.fold(dst, theirs)
		} else {
			copy(dst.Data(), theirs.Data())
		}
		some = true
	})
}

// Everybody are all members in the order of ranks.
func (c *turns) Everybody() []int { return c.t.all }
