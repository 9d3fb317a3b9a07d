package pgsync

import (
	"context"
	"math/bits"

	"gopgas/internal/mem"
	"gopgas/internal/shape"
)

// What combines to the same bits in whatever order, integers by any operation, can be combined on the rounds of the barrier that a turn is
// made of: in each round a member reads what the one 2^k places before it has combined so far. Where the barrier has levels, the
// first member of a node combines what its node has, takes part in the rounds for all of it, and the others read the result from it.
//
// What has been written to an outbox is not changed any more in that turn, so each round fills a slot of its own.

// folding combines from into another range of the same elements.
type folding = func(into, from mem.Range)

// doublingRounds is how many rounds a circle of n places takes.
func doublingRounds(n int) int { return bits.Len(uint(n - 1)) }

// combineBytes is how many bytes of each a combine over a circle of n places can move: it needs two slots for each round, and two
// to begin with.
func combineBytes(payload, n int) int { return payload / (2 * (doublingRounds(n) + 1)) &^ 7 }

// prefixBytes is how many bytes of each a Prefix over n places can move: it needs a slot for each round, one to begin with, and
// two of a node.
func prefixBytes(payload, n int) int { return payload / (doublingRounds(n) + 3) &^ 7 }

// circle is how many take part in the rounds of a shape in which all are heard: the members, or the nodes.
func circle(s *shape.Shape) int {
	if s.Levels() {
		return len(s.Nodes)
	}
	return len(s.Nodes[0])
}

// among reports whether a phase is that of the circle.
func among(s *shape.Shape, p *shape.Phase) bool {
	return p.Area == shape.Leaders || p.Area == shape.All && !s.Levels()
}

// slots is the outbox of a turn in pieces of equal length.
type slots struct {
	c     *turns
	off   int // of the outbox
	bytes int // of a slot
}

func (s slots) at(i, many int) mem.Range {
	return s.c.t.local.Slice(s.off+outboxHeader+i*s.bytes, many*s.bytes)
}

// fetch reads slots of another member into this one's.
func (s slots) fetch(member, from, to, many int) error {
	return s.c.fetch(member, from*s.bytes, to*s.bytes, many*s.bytes)
}

// foldNode combines slot 0 of the other members of this one's node into a slot of its own.
func (s slots) foldNode(into int, fold folding) error {
	t := s.c.t
	buf := mem.Range{}
	for _, m := range t.shape.Nodes[t.shape.Mine] {
		if m == t.me {
			continue
		}
		if !s.c.Mapped(m) && buf.Bytes == 0 {
			buf = mem.Of(make([]uint64, s.bytes/8+1)).Slice(0, s.bytes)
		}
		from, err := s.c.See(m, 0, s.bytes, buf)
		if err != nil {
			return err
		}
		fold(s.at(into, 1), from)
	}
	return nil
}

// combine has dst combined of all members' src, where dst is wanted. It is a turn.
//
// The circle of n places is combined in ceil(log2 n) rounds for every n (Bruck and Ho 1993). After k rounds a member has what the 2^k places
// up to its own have, in slot 2k, and what the n mod 2^k places up to its own have, in the next one. Where bit k of n is set, the second
// one grows: by the 2^k places up to this one before what the member in front of them has.
func (c *turns) combine(ctx context.Context, what call, root int, dst, src mem.Range, fold folding) error {
	t := c.t
	n, s := circle(&t.shape), slots{c, c.box(), src.Bytes}
	c.Write(0, src)
	v := visitor{
		begin: func(p *shape.Phase) error {
			if p.Area != shape.Leaders {
				return nil
			}
			return s.foldNode(0, fold)
		},
		heard: func(p *shape.Phase, from, dist int) error {
			if !among(&t.shape, p) {
				return nil
			}
			k := 2 * (bits.Len(uint(dist)) - 1)
			set, rest := n&dist != 0, n&(dist-1) != 0
			many := 1
			if set && rest {
				many = 2
			}
			if err := s.fetch(from, k, k+2, many); err != nil {
				return err
			}
			fold(s.at(k+2, 1), s.at(k, 1))
			switch {
			case set && rest:
				fold(s.at(k+3, 1), s.at(k, 1))
			case set:
				mem.Copy(s.at(k+3, 1).Data(), s.at(k, 1).Data())
			default:
				mem.Copy(s.at(k+3, 1).Data(), s.at(k+1, 1).Data())
			}
			return nil
		},
	}
	if err := c.turn(ctx, what, root, v); err != nil || root != everyone && root != t.me {
		return err
	}
	at := 2 * doublingRounds(n)
	if n&(n-1) != 0 {
		at++
	}
	if t.shape.Levels() && t.shape.Leader() != t.me {
		return c.Read(t.shape.Leader(), at*s.bytes, dst)
	}
	mem.Copy(dst.Data(), s.at(at, 1).Data())
	return nil
}

// PrefixBytes is how many bytes of each member a Prefix can move; 0 where the members of nodes are not next to each other.
func (c *turns) PrefixBytes() int {
	if !c.t.shape.InOrder() {
		return 0
	}
	return prefixBytes(c.Payload(), circle(&c.t.shape))
}

// Prefix has dst combined of the src of the members before this one, and with its own where inclusive. The first member's dst stays as it is
// otherwise. It is a turn in which members agree on elem, detail and n; fold must give the same bits in any order.
//
// In round k a place reads what the up to 2^k places up to the one 2^k before it have (Hillis and Steele 1986), over the members or over the
// nodes; the rest of its node a member reads itself (two levels: Sanders and Träff 2006).
func (c *turns) Prefix(ctx context.Context, elem, detail, n int, inclusive bool, dst, src mem.Range, fold folding) error {
	t := c.t
	s := slots{c, c.box(), src.Bytes}
	first := 0 // the slot in which the rounds begin
	if t.shape.Levels() {
		first = 1
	}
	before := first + doublingRounds(circle(&t.shape)) + 1 // the slot of what comes before the place
	some := false                                          // something does
	c.Write(0, src)
	v := visitor{
		begin: func(p *shape.Phase) error {
			if p.Area != shape.Leaders {
				return nil
			}
			mem.Copy(s.at(first, 1).Data(), s.at(0, 1).Data())
			return s.foldNode(first, fold)
		},
		heard: func(p *shape.Phase, from, dist int) error {
			if !among(&t.shape, p) {
				return nil
			}
			k := first + bits.Len(uint(dist)) - 1
			if p.Me < dist {
				mem.Copy(s.at(k+1, 1).Data(), s.at(k, 1).Data())
				return nil
			}
			if err := s.fetch(from, k, k+1, 1); err != nil {
				return err
			}
			if some {
				fold(s.at(before, 1), s.at(k+1, 1))
			} else {
				mem.Copy(s.at(before, 1).Data(), s.at(k+1, 1).Data())
			}
			some = true
			fold(s.at(k+1, 1), s.at(k, 1))
			return nil
		},
	}
	if err := c.turn(ctx, callOf(c.op, elem, detail, n), 0, v); err != nil {
		return err
	}
	return c.prefixOf(dst, s, before, inclusive, fold)
}

// prefixOf puts the parts of a prefix together.
func (c *turns) prefixOf(dst mem.Range, s slots, before int, inclusive bool, fold folding) error {
	t, some := c.t, false
	add := func(from mem.Range) {
		if some {
			fold(dst, from)
		} else {
			mem.Copy(dst.Data(), from.Data())
		}
		some = true
	}
	if inclusive {
		add(s.at(0, 1))
	}
	if !t.shape.Levels() {
		if t.me > 0 {
			add(s.at(before, 1))
		}
		return nil
	}
	buf := mem.Of(make([]uint64, s.bytes/8+1)).Slice(0, s.bytes)
	see := func(m, slot int) error {
		from, err := c.See(m, slot*s.bytes, s.bytes, buf)
		if err == nil {
			add(from)
		}
		return err
	}
	for _, m := range t.shape.Nodes[t.shape.Mine] {
		if m == t.me {
			break
		}
		if err := see(m, 0); err != nil {
			return err
		}
	}
	if t.shape.Mine == 0 {
		return nil
	}
	return see(t.shape.Leader(), before)
}
