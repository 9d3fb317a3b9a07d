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

// Op is how elements are combined, by reductions and by window.Accumulate. Its method String returns the operation's name in
// lower case, and Fetch that of the atomic which returns the old value, "fetch-add" or "swap", as errors and hang reports give it.
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

// query is what the choice of a method for a call of bytes of each member depends on.
func (t *Team) query(op string, bytes int, exact bool) query {
	return query{op: op, n: len(t.ranks), nodes: len(t.shape.Nodes), bytes: bytes, exact: exact, pushes: t.pushes}
}

// plain returns memory that a collective was given as the library uses it: unseen by the race check.
func plain[T any](t *Team, s []T) []T { return racecheck.Plain(t.races, s) }

// Broadcast copies root's buf to every member's buf, which has the same length everywhere. Collective. For each
// outbox-full (16 KiB, or 256 KiB where all members map each other's memory, or none does, and the call is not a started one) it takes a barrier; among up to 8 members all read from the root, or it pushes to them where none is mapped, in larger teams each from one that
// has the bytes already, in ceil(log2 n) steps; on a node only one member reads from another node. Long ones among up to 8 members none of which is mapped take two
// barriers whatever their length from the second use of a buf on, which is read from where it lies; so do those of 16 KiB and more where all are mapped, if root's buf is
// library memory (a window's, an array's), or Go memory which the kernel copies as fast. Among up to 8 members that are alike root does not wait for the others in a call of one outbox-full,
// nor they for each other: it is no barrier.
func Broadcast[T any](ctx context.Context, t *Team, buf []T, root int) error {
	const op = "broadcast"
	if err := checkData[T](t, op, root); err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.begin(ctx, op)
	if err != nil {
		return err
	}
	how := choose(t.query(op, len(buf)*mem.SizeOf[T](), false))
	buf = plain(t, buf)
	whole, what := mem.Of(buf), callOf(op, atom.TypeCode[T](), 0, len(buf))
	if c.slim(whole.Bytes, true) {
		return c.End(c.castSlip(ctx, what, whole, 0, whole.Bytes, root))
	}
	if how != relayed || c.t.maps {
		done, err := c.offered(ctx, what, root, whole.Bytes, c.likely(how, true), nil, whole, whole, func(m int) (from, to, bytes int) {
			if m == root && m != t.me {
				bytes = whole.Bytes
			}
			return 0, 0, bytes
		})
		if done || err != nil {
			return c.End(err)
		}
	}
	if err := c.widen(ctx, what, whole.Bytes); err != nil {
		return c.End(err)
	}
	return c.End(rounds(whole.Bytes, 1, c.part(how, true), func(lo, hi int) error {
		switch part := whole.Slice(lo, hi-lo); how {
		case relayed:
			return c.relay(ctx, what, part, root)
		case handed:
			return c.castSlip(ctx, what, whole, lo, hi, root)
		default:
			return c.cast(ctx, what, whole, lo, hi, root)
		}
	}))
}

// cast is a turn in which all read bytes lo to hi from the root.
func (c *turns) cast(ctx context.Context, what call, buf mem.Range, lo, hi, root int) error {
	part := buf.Slice(lo, hi-lo)
	if c.t.me == root && len(c.t.ranks) > 1 {
		c.Write(0, part)
	}
	if err := c.rootedTurn(ctx, what, root, hi, buf.Bytes, true); err != nil || c.t.me == root {
		return err
	}
	return c.Read(root, 0, part)
}

// castSlip is cast of bytes lo to hi by slips.
func (c *turns) castSlip(ctx context.Context, what call, buf mem.Range, lo, hi, root int) error {
	p := parcel{part: buf.Bytes, lo: lo, hi: hi, alone: true}
	if c.t.me == root {
		p.whole = buf
	}
	if err := c.handPart(ctx, what, root, everyone, p); err != nil || c.t.me == root {
		return err
	}
	return c.Slip(root, buf.Slice(lo, hi-lo))
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
	take := func(from int) error { have = true; return c.fetch(from, 0, 0, part.Bytes) }
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
	mem.Copy(part.Data(), mine.Data())
	return nil
}

// AllGather concatenates every member's src, in the order of ranks, into every member's dst. All src have the
// same length, and dst has Size times that; otherwise all members get an error. src may be this member's part of dst, and shares no memory with it otherwise. Collective. Short ones in teams of more than 8
// take one barrier with ceil(log2 n) reads; others a barrier and n-1 reads for each outbox-full of src, as in Broadcast, or two barriers for any length where src is used again and none is mapped, or src is library memory and all are, or Go memory which the kernel copies as fast. Where members share nodes a
// node reads long ones once, each of its members a share.
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
	all, mine, what := mem.Of(dst), mem.Of(src), callOf(op, atom.TypeCode[T](), 0, len(src))
	if c.slim(mine.Bytes, false) {
		return c.End(c.gatherSlips(ctx, what, everyone, mine, all))
	}
	return c.End(c.gatherAlike(ctx, what, mine, all))
}

// gatherAlike is an all-gather of as many bytes of each member.
func (c *turns) gatherAlike(ctx context.Context, what call, mine, all mem.Range) error {
	return c.gatherAll(ctx, what, mine.Bytes, func(m int) int { return m * mine.Bytes }, mine, all)
}

// AllGather gives every member's mine to all, who have member m's from at[m] to at[m+1]. The members agree on elem, n and at.
func (c *turns) AllGather(ctx context.Context, elem, n int, at []int, mine, all mem.Range) error {
	longest := 0
	for m := range c.t.ranks {
		longest = max(longest, at[m+1]-at[m])
	}
	return c.gatherAll(ctx, callOf(c.op, elem, 0, n), longest, func(m int) int { return at[m] }, mine, all)
}

// gatherAll is an all-gather of longest bytes at most of each member, of whom m's begin at at(m), and end where the next one's begin.
func (c *turns) gatherAll(ctx context.Context, what call, longest int, at func(m int) int, mine, all mem.Range) error {
	t := c.t
	if c.slim(longest, false) && at(len(t.ranks)) == len(t.ranks)*longest {
		return c.gatherSlips(ctx, what, everyone, mine, all)
	}
	q := t.query("allgather", longest, false)
	q.smallest = t.smallest()
	how := choose(q)
	switch how {
	case gathered:
		return c.gatherPadded(ctx, what, longest, at, mine, all)
	case nodal:
		return c.gatherByNodes(ctx, what, longest, at, mine, all)
	}
	bytes := func(m int) int { return at(m+1) - at(m) }
	done, err := c.offered(ctx, what, everyone, longest, c.likely(how, false), func(m int) bool { return bytes(m) == 0 }, mine, all,
		func(m int) (int, int, int) { return 0, at(m), bytes(m) })
	if done || err != nil {
		return err
	}
	if err := c.widen(ctx, what, longest); err != nil {
		return err
	}
	if how == handed {
		return c.gatherPushed(ctx, what, longest, at, mine, all)
	}
	return rounds(longest, 1, c.Payload(), func(lo, hi int) error {
		some := func(m int) (off, bytes int) { return stretch(at(m), at(m+1), lo, hi) }
		off, n := stretch(0, mine.Bytes, lo, hi)
		c.Write(0, mine.Slice(off, n))
		if err := c.turn(ctx, what, 0, visitor{}); err != nil {
			return err
		}
		return c.ReadAll(all, func(m int) (from, to, bytes int) {
			off, n := some(m)
			return 0, off, n
		})
	})
}

// gatherPushed is gatherAll of what each member pushes to the others.
func (c *turns) gatherPushed(ctx context.Context, what call, longest int, at func(m int) int, mine, all mem.Range) error {
	return rounds(longest, 1, c.inbox(false), func(lo, hi int) error {
		off, n := stretch(0, mine.Bytes, lo, hi)
		if err := c.pushed(ctx, what, 0, everyone, parcel{whole: mine, part: mine.Bytes, lo: lo, hi: hi}); err != nil {
			return err
		}
		for m := range c.t.ranks {
			to, bytes := stretch(at(m), at(m+1), lo, hi)
			switch dst := all.Slice(to, bytes); {
			case bytes == 0:
			case m == c.t.me:
				mem.Copy(dst.Data(), mine.Slice(off, n).Data())
			default:
				if err := c.Slip(m, dst); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// stretch is where bytes lo to hi of what begins at from and ends at to lie, and how many there are.
func stretch(from, to, lo, hi int) (off, n int) {
	lo, hi = min(from+lo, to), min(from+hi, to)
	return lo, hi - lo
}

// gatherPadded is gather of slots in which what is shorter has room behind it.
func (c *turns) gatherPadded(ctx context.Context, what call, longest int, at func(m int) int, mine, all mem.Range) error {
	n := len(c.t.ranks)
	if at(n) == n*longest {
		return c.gather(ctx, what, everyone, mine.Data(), all.Data())
	}
	slot, slots := make([]byte, longest), make([]byte, n*longest)
	mem.Copy(slot, mine.Data())
	if err := c.gather(ctx, what, everyone, slot, slots); err != nil {
		return err
	}
	for m := range n {
		mem.Copy(all.Slice(at(m), at(m+1)-at(m)).Data(), slots[m*longest:])
	}
	return nil
}
