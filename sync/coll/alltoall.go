package coll

import (
	"context"
	"fmt"
	"slices"

	"gopgas/internal/mem"
	pgsync "gopgas/sync"
)

// AllToAll gives part j of every member's src to member j, who gets them in the order of members: part i of member j's dst is
// part j of member i's src. dst and src have the same length, a multiple of Size, the same on all members, and do not overlap.
// Collective. For each outbox-full of src it takes a barrier and up to n-1 reads by each member, all at once and each member
// beginning with its next one (the rotation of the pairwise exchange in Thakur, Rabenseifner, Gropp 2005).
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
	from := t.Rank() * part
	return c.End(rounds(mine.Bytes, c.Payload(), func(lo, hi int) error {
		c.Write(0, mine.Slice(lo, hi-lo))
		if err := c.Turn(ctx, mem.SizeOf[T](), 0, len(src), 0); err != nil {
			return err
		}
		begin, end := overlap(lo, hi, from, from+part)
		if begin == end {
			return nil
		}
		return c.ReadAll(theirs, func(m int) (off, to, bytes int) { return begin - lo, m*part + begin - from, end - begin })
	}))
}

// AllToAllV is AllToAll of different lengths: sendCounts[j] elements of src are for member j, recvCounts[i] elements of dst are
// member i's. Member j's recvCounts[i] must be member i's sendCounts[j], else all members get an error. Collective. Two
// barriers in which members learn what they get, and then a barrier for each outbox-full of the longest src; in all, up to n-1
// reads of 16 bytes and those of the data by each member.
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
	x := exchange{c: c, width: mem.SizeOf[T](), to: begins(recvCounts, mem.SizeOf[T]())}
	if err := x.plan(ctx, t, recvCounts, begins(sendCounts, x.width)); err != nil {
		return c.End(err)
	}
	return c.End(x.run(ctx, mem.Of(plain(t, dst)), mem.Of(plain(t, src))))
}

// exchange is an all-to-all of different lengths.
type exchange struct {
	c       turns
	width   int
	to      []int      // where in dst each member's part begins, in bytes
	theirs  [][2]int64 // where in each member's src this one's part begins and ends, in bytes
	longest int        // the bytes of the longest src
}

// plan has members tell each other what they send.
func (x *exchange) plan(ctx context.Context, t *pgsync.Team, recvCounts, at []int) error {
	n := t.Size()
	mine, all := []uint64{uint64(at[n])}, make([]uint64, n)
	if err := x.c.Gather(ctx, x.width, 0, 0, mem.Of(mine).Data(), mem.Of(all).Data()); err != nil {
		return err
	}
	x.longest = int(slices.Max(all))
	const entry = 16 // where a part begins and ends
	table := make([][2]int64, n)
	for m := range table {
		table[m] = [2]int64{int64(at[m]), int64(at[m+1])}
	}
	x.c.Write(0, mem.Of(table))
	if err := x.c.Turn(ctx, x.width, 0, x.longest, 0); err != nil {
		return err
	}
	x.theirs = make([][2]int64, n)
	err := x.c.ReadAll(mem.Of(x.theirs), func(m int) (from, to, bytes int) { return entry * t.Rank(), entry * m, entry })
	for m, part := range x.theirs {
		if bytes := int(part[1] - part[0]); err == nil && bytes != recvCounts[m]*x.width {
			err = x.c.Mismatch(m, fmt.Sprintf("rank %d sends %d elements to this rank, which wants %d", t.WorldRank(m), bytes/x.width, recvCounts[m]))
		}
	}
	return err
}

func (x *exchange) run(ctx context.Context, dst, src mem.Range) error {
	return rounds(x.longest, x.c.Payload(), func(lo, hi int) error {
		if begin, end := overlap(lo, hi, 0, src.Bytes); end > begin {
			x.c.Write(0, src.Slice(begin, end-begin))
		}
		if err := x.c.Turn(ctx, x.width, 0, x.longest, 0); err != nil {
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
