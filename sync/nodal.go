package pgsync

import (
	"context"

	"gopgas/internal/mem"
)

// A reduction by nodes divides the elements twice: among all members, an n-th for each, and among those of each node. Between two turns a
// member has one stretch of the elements in its outbox, and in the next one it reads another stretch from all that have some of it.

// nodal combines within the nodes and between them, and spreads the result in the nodes.
func (r *reduction) nodal(ctx context.Context, dst, src mem.Range) error {
	t, n := r.c.t, src.Bytes/r.elem.Bytes
	place := places(t.shape.Nodes)
	home := len(t.shape.Nodes[t.shape.Mine])
	lo, hi := segment(n, home, place[t.me].at)
	share := r.room(hi - lo)
	if err := r.show(ctx, src); err != nil {
		return err
	}
	if err := r.result(ctx, share, lo, n, place); err != nil {
		return err
	}
	if err := r.show(ctx, share); err != nil {
		return err
	}
	return r.pull(dst, 0, n, func(m int) (int, int) {
		if place[m].node != t.shape.Mine {
			return 0, 0
		}
		return segment(n, home, place[m].at)
	}, nil)
}

// result makes share this member's share of what its node needs of the result, from element lo of n on. All have shown their elements.
func (r *reduction) result(ctx context.Context, share mem.Range, lo, n int, place []place) error {
	c, t := r.c, r.c.t
	hi := lo + share.Bytes/r.elem.Bytes
	a, b := segment(n, len(t.ranks), t.me) // what this member combines for all nodes
	part := r.room(b - a)
	var err error
	if r.exact {
		if err := r.combine(share, lo, t.shape.Nodes[t.shape.Mine]); err != nil {
			return err
		}
		if err := r.show(ctx, share); err != nil {
			return err
		}
		if len(t.shape.Nodes) <= fewNodes {
			return r.between(share, lo, hi, n, place)
		}
		err = r.between(part, a, b, n, place)
	} else {
		err = r.combine(part, a, c.Everybody())
	}
	if err != nil {
		return err
	}
	if err := r.show(ctx, part); err != nil {
		return err
	}
	return r.pull(share, lo, hi, func(m int) (int, int) { return segment(n, len(t.ranks), m) }, nil)
}

// show has others see elements, in a turn.
func (r *reduction) show(ctx context.Context, elements mem.Range) error {
	r.c.Write(0, elements)
	return r.c.turn(ctx, r.what, r.root, visitor{})
}

// between combines the elements [lo, hi) of what the nodes have, each in the outboxes of its members, into sum.
func (r *reduction) between(sum mem.Range, lo, hi, n int, place []place) error {
	nodes := r.c.t.shape.Nodes
	rows := r.room(len(nodes) * (hi - lo))
	err := r.pull(rows, lo, hi, func(m int) (lo, hi int) {
		return segment(n, len(nodes[place[m].node]), place[m].at)
	}, func(m int) int { return place[m].node * (hi - lo) })
	if err != nil || hi == lo {
		return err
	}
	copy(sum.Data(), rows.Data())
	for i := 1; i < len(nodes); i++ {
		r.fold(sum, rows.Slice(i*sum.Bytes, sum.Bytes))
	}
	return nil
}

// pull reads the elements [lo, hi) from the outboxes of all that have some of them; of says which a member has. What comes from a member goes to
// dst, from element row of it on.
func (r *reduction) pull(dst mem.Range, lo, hi int, of func(m int) (lo, hi int), row func(m int) int) error {
	width := r.elem.Bytes
	return r.c.ReadAll(dst, func(m int) (from, to, bytes int) {
		a, b := of(m)
		begin, end := max(a, lo), min(b, hi)
		if begin >= end {
			return 0, 0, 0
		}
		to = begin - lo
		if row != nil {
			to += row(m)
		}
		return (begin - a) * width, to * width, (end - begin) * width
	})
}

// place is where a member lies: which node, and which of its members.
type place struct{ node, at int }

// places are those of all members.
func places(nodes [][]int) []place {
	n := 0
	for _, members := range nodes {
		n += len(members)
	}
	all := make([]place, n)
	for i, members := range nodes {
		for j, m := range members {
			all[m] = place{i, j}
		}
	}
	return all
}
