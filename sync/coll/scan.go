package coll

import (
	"context"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	pgsync "gopgas/sync"
)

// Scan combines, element by element, the src of the members up to and with this one, in the order of members, into dst
// (an inclusive prefix: Blelloch 1990). dst and src have the same length, the same on all members, and may be the same slice.
// Collective. Short ones in teams of more than 8 take one barrier with ceil(log2 n) reads, of integers in each of what one member has; up to
// 8 KiB among few a barrier and a read of each earlier member, all at once; longer ones two barriers for each outbox-full, and 2 n reads of
// an n-th part each.
func Scan[T pgsync.Number](ctx context.Context, t *pgsync.Team, dst, src []T, op pgsync.Op) error {
	return scan(ctx, t, "scan", dst, src, op, 0)
}

// ExScan is Scan without this member's own src (an exclusive prefix). Member 0 has none before it: its dst stays as it is.
func ExScan[T pgsync.Number](ctx context.Context, t *pgsync.Team, dst, src []T, op pgsync.Op) error {
	return scan(ctx, t, "exscan", dst, src, op, 1)
}

// method is how a prefix is computed.
type method int

const (
	direct    method = iota // each member reads from all before it
	gathered                // everybody gets everything between the rounds of a barrier
	segmented               // each member computes an n-th part of all members' prefixes
	doubled                 // partial prefixes go on between the rounds of a barrier, and within nodes (Hillis and Steele 1986)
)

func (m method) String() string { return [...]string{"direct", "gathered", "segmented", "doubled"}[m] }

// Where methods change: as for reductions.
const (
	few            = 8
	leastSegmented = 8 << 10
)

// choose picks the method for n members with bytes each, of which a gather can carry slot, and doubling most. exact says that elements give the
// same bits in any order, as C1 needs for doubling. Direct reads cost the last member n·bytes, as gathering all do; doubling ceil(log2 n)·bytes;
// segmented ones every member 2·bytes and a second barrier.
func choose(n, bytes, slot, most int, exact bool) method {
	switch {
	case n > few && exact && bytes <= most:
		return doubled
	case n > few && bytes <= slot:
		return gathered
	case n > few, n > 2 && bytes >= leastSegmented:
		return segmented
	}
	return direct
}

// prefix is a Scan, or with less 1 an ExScan, while it goes on.
type prefix[T pgsync.Number] struct {
	t     *pgsync.Team
	c     turns
	op    pgsync.Op
	n     int // elements of the whole call
	less  int // of the last members of a prefix
	other []byte
	room  [2][2]uint64 // in a turn of slips: what is combined so far, and a member's elements
}

func scan[T pgsync.Number](ctx context.Context, t *pgsync.Team, name string, dst, src []T, op pgsync.Op, less int) error {
	if err := t.CheckReduction(name, atom.ElemOf[T](), op, len(dst), len(src), true); err != nil {
		return t.Refuse(ctx, name, err)
	}
	c, err := t.Collective(ctx, name)
	if err != nil {
		return err
	}
	dst, src = plain(t, dst), plain(t, src)
	p := &prefix[T]{t: t, c: c, op: op, n: len(src), less: less}
	width := mem.SizeOf[T]()
	if len(src)*width <= len(p.room[0])*8 && c.Slips(len(src)*width) {
		return c.End(p.slips(ctx, dst, src))
	}
	exact := atom.ElemOf[T]().Check(pgsync.And) == nil // integers do
	how := choose(t.Size(), len(src)*width, c.Slot(), c.PrefixBytes(), exact)
	switch how {
	case gathered:
		return c.End(p.gathered(ctx, dst, src))
	case doubled:
		return c.End(c.Prefix(ctx, atom.ElemOf[T]().Code(), int(op), len(src), less == 0, mem.Of(dst), mem.Of(src), func(into, from mem.Range) {
			atom.FoldRange(op, atom.ElemOf[T](), into, from)
		}))
	}
	if err := c.Widen(ctx, atom.ElemOf[T]().Code(), int(op), len(src), len(src)*width); err != nil {
		return c.End(err)
	}
	step := c.Payload() / width
	if how == segmented {
		step -= t.Size() // parts are rounded up, and each member keeps one of each
	}
	return c.End(rounds(len(src), step, func(lo, hi int) error {
		if how == segmented {
			return p.segmented(ctx, dst[lo:hi], src[lo:hi])
		}
		return p.direct(ctx, dst[lo:hi], src[lo:hi])
	}))
}

// slips has each member hand its elements to all others.
func (p *prefix[T]) slips(ctx context.Context, dst, src []T) error {
	mine := mem.Of(src)
	err := p.c.Hand(ctx, atom.ElemOf[T]().Code(), int(p.op), p.n, 0, mine, mine.Bytes, 0)
	members := p.t.Rank() + 1 - p.less
	if err != nil || members == 0 {
		return err
	}
	sum, theirs := mem.Slice[T](mem.Of(p.room[0][:]))[:p.n], mem.Slice[T](mem.Of(p.room[1][:]))[:p.n]
	for m := range members {
		from := src
		if m != p.t.Rank() {
			if err := p.c.Slip(m, mem.Of(theirs)); err != nil {
				return err
			}
			from = theirs
		}
		p.add(sum, from, m)
	}
	copy(dst, sum) // may be src
	return nil
}

// gathered combines what a gather has brought.
func (p *prefix[T]) gathered(ctx context.Context, dst, src []T) error {
	n := len(src)
	all := make([]T, n*p.t.Size())
	if err := p.c.Gather(ctx, atom.ElemOf[T]().Code(), int(p.op), p.n, mem.Of(src).Data(), mem.Of(all).Data()); err != nil {
		return err
	}
	for m := range p.t.Rank() + 1 - p.less {
		p.add(dst, all[m*n:(m+1)*n], m)
	}
	return nil
}

// add combines the elements of member m into dst, which member 0's begin.
func (p *prefix[T]) add(dst, from []T, m int) {
	if m == 0 {
		copy(dst, from)
	} else {
		atom.FoldRange(p.op, atom.ElemOf[T](), mem.Of(dst), mem.Of(from))
	}
}

// direct reads the outboxes of all members before this one.
func (p *prefix[T]) direct(ctx context.Context, dst, src []T) error {
	p.c.Write(0, mem.Of(src))
	if err := p.c.Turn(ctx, atom.ElemOf[T]().Code(), int(p.op), p.n, 0); err != nil {
		return err
	}
	return p.see(0, dst, p.t.Rank()+1-p.less, func(m int, from []T) { p.add(dst, from, m) })
}

// see calls f with as many elements as like has of the outboxes of the first members, from element lo on.
func (p *prefix[T]) see(lo int, like []T, members int, f func(m int, from []T)) error {
	if len(like) == 0 {
		return nil
	}
	width := mem.SizeOf[T]()
	return p.c.SeeEach(lo*width, len(like)*width, p.c.Everybody()[:members], &p.other, func(m int, theirs mem.Range) { f(m, mem.Slice[T](theirs)) })
}

// segmented has each member compute a part of the prefixes of all, and then read its own prefix from all.
func (p *prefix[T]) segmented(ctx context.Context, dst, src []T) error {
	me, n, width := p.t.Rank(), p.t.Size(), mem.SizeOf[T]()
	p.c.Write(0, mem.Of(src))
	if err := p.c.Turn(ctx, atom.ElemOf[T]().Code(), int(p.op), p.n, 0); err != nil {
		return err
	}
	lo, hi := len(src)*me/n, len(src)*(me+1)/n
	sums := make([]T, (hi-lo)*n) // of each member, one behind the other
	err := p.see(lo, sums[:hi-lo], n, func(m int, from []T) {
		sum := sums[m*(hi-lo) : (m+1)*(hi-lo)]
		if m > 0 {
			copy(sum, sums[(m-1)*(hi-lo):])
		}
		p.add(sum, from, m)
	})
	if err != nil {
		return err
	}
	p.c.Write(0, mem.Of(sums))
	if err := p.c.Turn(ctx, atom.ElemOf[T]().Code(), int(p.op), p.n, 0); err != nil {
		return err
	}
	last := me - p.less
	if last < 0 {
		return nil
	}
	return p.c.ReadAll(mem.Of(dst), func(m int) (from, to, bytes int) {
		lo, hi := len(src)*m/n, len(src)*(m+1)/n
		return last * (hi - lo) * width, lo * width, (hi - lo) * width
	})
}
