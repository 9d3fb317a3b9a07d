package coll

import (
	"context"
	"fmt"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	pgsync "gopgas/sync"
)

// AllToAll gives part j of every member's src to member j, who gets them in the order of members: part i of member j's dst is
// part j of member i's src. dst and src have the same length, a multiple of Size, the same on all members, and do not overlap.
// Collective. A src that fits into an outbox takes a barrier and n-1 reads by each member, all at once and each member beginning with its next
// one; where parts are short and members 60 or more, a barrier with ceil(log2 n) reads (Bruck et al. 1997). Where members share nodes, 8 or so, one whose parts have
// up to 1 or 2 KB takes two barriers for each outbox-full: the members of a node collect what it has for others, and each reads once from each other node (Träff and
// Rougier 2014). A longer one goes in pairs: in
// step s a member writes what is for the one s places behind it, and reads from the one s places before it; a barrier for each outbox-full of a
// part, or for as many parts as fit (Thakur, Rabenseifner, Gropp 2005). Where up to 8 members push to each other over a NIC they do so here, of each part as much as an inbox holds, and
// a turn's pieces set out while those of the one before are copied.
func AllToAll[T any](ctx context.Context, t *pgsync.Team, dst, src []T) error {
	const op = "alltoall"
	err := checked[T](t, op, 0)
	if err == nil && len(src)%t.Size() != 0 {
		err = wrongLength(op, "src", len(src), len(src)/t.Size()*t.Size())
	}
	if err == nil && len(dst) != len(src) {
		err = wrongLength(op, "dst", len(dst), len(src))
	}
	if err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.Collective(ctx, op)
	if err != nil {
		return err
	}
	dst, src = plain(t, dst), plain(t, src)
	theirs, mine := mem.Of(dst), mem.Of(src)
	part := mine.Bytes / t.Size()
	if c.Slips(part) {
		return c.End(bySlips(ctx, t, c, atom.TypeCode[T](), len(src), part, theirs, mine))
	}
	return c.End(allToAll(ctx, t, c, atom.TypeCode[T](), len(src), part, theirs, mine))
}

// allToAll moves parts of one length, of a src of n elements.
func allToAll(ctx context.Context, t *pgsync.Team, c turns, elem, n, part int, theirs, mine mem.Range) error {
	if inSteps(t.Size(), c.Circle(), part, c.ShuffleBytes()) {
		return c.Shuffle(ctx, elem, n, theirs, mine)
	}
	if slice := c.InSlices(part, turnsByOwners(t.Size(), part, mine.Bytes, c.Payload())); slice > 0 {
		return c.ShuffleParts(ctx, elem, n, slice, theirs, mine)
	}
	done, err := c.Offered(ctx, elem, n, everyone, part, c.Part(false), nil, mine, theirs, func(m int) (from, to, bytes int) { return t.Rank() * part, m * part, part })
	if done || err != nil {
		return err
	}
	if err := c.Widen(ctx, elem, 0, n, mine.Bytes); err != nil {
		return err
	}
	if inbox := c.Inbox(false); inbox > 0 && part > 0 {
		return rounds(part, inbox, func(lo, hi int) error {
			if err := c.HandPart(ctx, elem, n, -1, mine, part, lo, hi); err != nil {
				return err
			}
			return handed(t, c, theirs, mine, part, lo, hi)
		})
	}
	if inPairs(t.Size(), part, mine.Bytes, c.Payload()) {
		at := func(m int) int { return m * part }
		p := pairs{c: c, elem: elem, n: n, from: at, to: at, part: part}
		return p.run(ctx, t, theirs, mine)
	}
	me, from := t.Rank(), t.Rank()*part
	mem.Copy(theirs.Slice(from, part).Data(), mine.Slice(from, part).Data())
	return rounds(mine.Bytes, c.Payload(), func(lo, hi int) error {
		for _, others := range [][2]int{{0, from}, {from + part, mine.Bytes}} {
			if begin, end := overlap(lo, hi, others[0], others[1]); begin < end {
				c.Write(begin-lo, mine.Slice(begin, end-begin))
			}
		}
		if err := c.Turn(ctx, elem, 0, n, 0); err != nil {
			return err
		}
		begin, end := overlap(lo, hi, from, from+part)
		if begin == end {
			return nil
		}
		return c.ReadAll(theirs, func(m int) (off, to, bytes int) {
			if m == me {
				return 0, 0, 0
			}
			return begin - lo, m*part + begin - from, end - begin
		})
	})
}

// bySlips has each member hand the others what is for them.
func bySlips(ctx context.Context, t *pgsync.Team, c turns, elem, n, part int, dst, src mem.Range) error {
	if err := c.Hand(ctx, elem, 0, n, 0, src, part, part); err != nil {
		return err
	}
	return handed(t, c, dst, src, part, 0, part)
}

// handed copies bytes lo to hi of each part to where they belong: those that other members have handed to this one, and its own.
func handed(t *pgsync.Team, c turns, dst, src mem.Range, part, lo, hi int) error {
	for m := range t.Size() {
		if to := dst.Slice(m*part+lo, hi-lo); m == t.Rank() {
			mem.Copy(to.Data(), src.Slice(m*part+lo, hi-lo).Data())
		} else if err := c.Slip(m, to); err != nil {
			return err
		}
	}
	return nil
}

// pairs is an all-to-all in which each member reads from another one in each step.
type pairs struct {
	c        turns
	elem, n  int             // what all members agree on
	from, to func(m int) int // where in src the part for member m, and in dst the part of member m, begins; at the team's size the end
	part     int             // the bytes of the longest part that any member has for any
}

func (p *pairs) run(ctx context.Context, t *pgsync.Team, dst, src mem.Range) error {
	n, me := t.Size(), t.Rank()
	own := src.Slice(p.from(me), p.from(me+1)-p.from(me))
	mem.Copy(dst.Slice(p.to(me), own.Bytes).Data(), own.Data())
	for l := range legs(n, p.part, p.c.Payload()) {
		for q := range l.steps {
			m := (me + l.first + q) % n
			if begin, end := overlap(l.lo, l.hi, 0, p.from(m+1)-p.from(m)); end > begin {
				p.c.Write(q*p.part, src.Slice(p.from(m)+begin, end-begin))
			}
		}
		if err := p.c.Turn(ctx, p.elem, 0, p.n, 0); err != nil {
			return err
		}
		of := func(m int) (from, to, bytes int) {
			q := ((me-m-l.first)%n + n) % n
			if q >= l.steps {
				return 0, 0, 0
			}
			begin, end := overlap(l.lo, l.hi, 0, p.to(m+1)-p.to(m))
			if begin == end {
				return 0, 0, 0
			}
			return q * p.part, p.to(m) + begin, end - begin
		}
		if err := p.read(dst, l, (me-l.first+n)%n, of); err != nil {
			return err
		}
	}
	return nil
}

// read reads what a leg has brought; in its first step it is from member m.
func (p *pairs) read(dst mem.Range, l leg, m int, of func(m int) (from, to, bytes int)) error {
	if l.steps > 1 {
		return p.c.ReadAll(dst, of)
	}
	off, to, bytes := of(m)
	if bytes == 0 {
		return nil
	}
	return p.c.Read(m, off, dst.Slice(to, bytes))
}

// AllToAllV is AllToAll of different lengths: sendCounts[j] elements of src are for member j, recvCounts[i] elements of dst are
// member i's. Member j's recvCounts[i] must be member i's sendCounts[j], else all members get an error. Collective. Two
// barriers in which members learn what they get, with up to n-1 reads of 16 bytes by each member (where AllToAll of so little goes by nodes, three), and then as
// AllToAll for the longest part; in the order of src, with a barrier for each outbox-full of the longest, where a few parts are much longer than the others.
func AllToAllV[T any](ctx context.Context, t *pgsync.Team, dst []T, recvCounts []int, src []T, sendCounts []int) error {
	const op = "alltoallv"
	err := checked[T](t, op, 0)
	if err == nil {
		err = checkCounts(t, op, "src", sendCounts, len(src))
	}
	if err == nil {
		err = checkCounts(t, op, "dst", recvCounts, len(dst))
	}
	if err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.Collective(ctx, op)
	if err != nil {
		return err
	}
	x := exchange{c: c, elem: atom.TypeCode[T](), width: mem.SizeOf[T](), to: begins(recvCounts, mem.SizeOf[T]())}
	from := begins(sendCounts, x.width)
	if err := x.plan(ctx, t, recvCounts, from); err != nil {
		return c.End(err)
	}
	if n := t.Size(); nearlyAlike(n, x.part, x.longest, c.Payload()) {
		if slice := c.InSlices(x.part, turnsByOwners(n, x.part, x.longest, c.Payload())); slice > 0 {
			return c.End(x.padded(ctx, t, slice, mem.Of(plain(t, dst)), mem.Of(plain(t, src)), from))
		}
	}
	done, err := c.Offered(ctx, x.elem, x.longest, everyone, x.part, c.Part(false), func(m int) bool { return x.bytes[m] == 0 }, mem.Of(plain(t, src)), mem.Of(plain(t, dst)), x.of)
	if done || err != nil {
		return c.End(err)
	}
	if err := c.Widen(ctx, x.elem, 0, x.longest, x.longest); err != nil {
		return c.End(err)
	}
	if inPairs(t.Size(), x.part, x.longest, c.Payload()) {
		p := pairs{c: c, elem: x.elem, n: x.longest, part: x.part}
		p.from, p.to = func(m int) int { return from[m] }, func(m int) int { return x.to[m] }
		return c.End(p.run(ctx, t, mem.Of(plain(t, dst)), mem.Of(plain(t, src))))
	}
	return c.End(x.run(ctx, mem.Of(plain(t, dst)), mem.Of(plain(t, src))))
}

// exchange is an all-to-all of different lengths.
type exchange struct {
	c       turns
	elem    int // the atom.TypeCode of an element, of width bytes
	width   int
	to      []int      // where in dst each member's part begins, in bytes
	theirs  [][2]int64 // where in each member's src this one's part begins and ends, in bytes
	bytes   []int      // of each member's src
	longest int        // the bytes of the longest src
	part    int        // the bytes of the longest part
}

// plan has members tell each other what they send.
func (x *exchange) plan(ctx context.Context, t *pgsync.Team, recvCounts, at []int) error {
	n := t.Size()
	mine, all := [][2]uint64{{uint64(at[n]), 0}}, make([][2]uint64, n)
	for m := range n {
		mine[0][1] = max(mine[0][1], uint64(at[m+1]-at[m]))
	}
	if err := x.c.Gather(ctx, x.elem, 0, 0, mem.Of(mine).Data(), mem.Of(all).Data()); err != nil {
		return err
	}
	for _, m := range all {
		x.bytes = append(x.bytes, int(m[0]))
		x.longest, x.part = max(x.longest, int(m[0])), max(x.part, int(m[1]))
	}
	const entry = 16 // where a part begins and ends
	table := make([][2]int64, n)
	for m := range table {
		table[m] = [2]int64{int64(at[m]), int64(at[m+1])}
	}
	x.theirs = make([][2]int64, n)
	err := x.swap(ctx, t, entry, mem.Of(x.theirs), mem.Of(table))
	for m, part := range x.theirs {
		if bytes := int(part[1] - part[0]); err == nil && bytes != recvCounts[m]*x.width {
			err = x.c.Mismatch(m, fmt.Sprintf("rank %d sends %d elements to this rank, which wants %d", t.WorldRank(m), bytes/x.width, recvCounts[m]))
		}
	}
	return err
}

// of is what this member wants of another's src: how many bytes from where, and where to.
func (x *exchange) of(m int) (from, to, bytes int) {
	return int(x.theirs[m][0]), x.to[m], int(x.theirs[m][1] - x.theirs[m][0])
}

// swap is an all-to-all of short parts of one length.
func (x *exchange) swap(ctx context.Context, t *pgsync.Team, part int, dst, src mem.Range) error {
	if x.c.InSlices(part, 1) == part {
		return x.c.ShuffleParts(ctx, x.elem, x.longest, part, dst, src)
	}
	x.c.Write(0, src)
	if err := x.c.Turn(ctx, x.elem, 0, x.longest, 0); err != nil {
		return err
	}
	return x.c.ReadAll(dst, func(m int) (from, to, bytes int) { return part * t.Rank(), part * m, part })
}

// padded has parts travel by nodes, in slices, as if all were as long as the longest.
func (x *exchange) padded(ctx context.Context, t *pgsync.Team, slice int, dst, src mem.Range, from []int) error {
	n := t.Size()
	out, in := mem.Of(make([]byte, n*x.part)), mem.Of(make([]byte, n*x.part))
	for m := range n {
		mem.Copy(out.Slice(m*x.part, x.part).Data(), src.Slice(from[m], from[m+1]-from[m]).Data())
	}
	if err := x.c.ShuffleParts(ctx, x.elem, x.longest, slice, in, out); err != nil {
		return err
	}
	for m := range n {
		mem.Copy(dst.Slice(x.to[m], x.to[m+1]-x.to[m]).Data(), in.Slice(m*x.part, x.part).Data())
	}
	return nil
}

func (x *exchange) run(ctx context.Context, dst, src mem.Range) error {
	return rounds(x.longest, x.c.Payload(), func(lo, hi int) error {
		if begin, end := overlap(lo, hi, 0, src.Bytes); end > begin {
			x.c.Write(0, src.Slice(begin, end-begin))
		}
		if err := x.c.Turn(ctx, x.elem, 0, x.longest, 0); err != nil {
			return err
		}
		return x.c.ReadAll(dst, func(m int) (from, to, bytes int) {
			begin, end := overlap(lo, hi, int(x.theirs[m][0]), int(x.theirs[m][1]))
			if begin == end {
				return 0, 0, 0
			}
			return begin - lo, x.to[m] + begin - int(x.theirs[m][0]), end - begin
		})
	})
}
