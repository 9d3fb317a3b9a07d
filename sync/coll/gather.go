package coll

import (
	"context"
	"fmt"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	pgsync "gopgas/sync"
)

// Gather concatenates every member's src, in the order of members, into root's dst, which has Size times the length; dst is
// not looked at elsewhere. All src have the same length. Root's src may be its part of dst, and shares no memory with it otherwise. Collective. For each outbox-full of src it takes a barrier and n reads
// by root, all at once; from some 60 members on short ones take one
// barrier with ceil(log2 n) reads by root. Where members share nodes, and what a node has fits into an outbox, one member of each node collects that between
// the rounds of the barrier, and root reads once from each other node. Among up to 8 members that are alike the others do not wait for root where src fits into an outbox: it is no barrier.
func Gather[T any](ctx context.Context, t *pgsync.Team, dst, src []T, root int) error {
	const op = "gather"
	err := checked[T](t, op, root)
	if err == nil && t.Rank() == root && len(dst) != len(src)*t.Size() {
		err = wrongLength(op, "dst", len(dst), len(src)*t.Size())
	}
	if err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.Collective(ctx, op)
	if err != nil {
		return err
	}
	dst, src = plain(t, dst), plain(t, src)
	all, mine, elem := mem.Of(dst), mem.Of(src), atom.TypeCode[T]()
	at, collected := func(m int) int { return m * mine.Bytes }, false
	readers := t.Size() // of whom root reads at once
	if c.Nodes() > 1 {
		if collected = c.Collected(at); collected {
			readers = c.Nodes()
		}
	}
	if c.Slips(mine.Bytes) || inSteps(readers, c.Circle(), mine.Bytes, c.Slot()) {
		return c.End(c.GatherTo(ctx, elem, 0, len(src), root, mine.Data(), all.Data()))
	}
	if collected {
		return c.End(c.GatherParts(ctx, elem, len(src), root, at, mine, all))
	}
	done, err := c.Offered(ctx, elem, len(src), everyone, mine.Bytes, c.Part(true), nil, mine, all, func(m int) (from, to, bytes int) {
		if t.Rank() == root {
			to, bytes = m*mine.Bytes, mine.Bytes
		}
		return 0, to, bytes
	})
	if done || err != nil {
		return c.End(err)
	}
	if err := c.Widen(ctx, elem, 0, len(src), mine.Bytes); err != nil {
		return c.End(err)
	}
	return c.End(rounds(mine.Bytes, c.Payload(), func(lo, hi int) error {
		c.Write(0, mine.Slice(lo, hi-lo))
		if err := c.TurnTo(ctx, elem, len(src), root, hi, mine.Bytes); err != nil || t.Rank() != root {
			return err
		}
		return c.ReadAll(all, func(m int) (from, to, bytes int) { return 0, m*mine.Bytes + lo, hi - lo })
	}))
}

// GatherV is Gather of different lengths: counts[m] elements of member m. counts and dst are looked at on root only, and each
// member's src must have the length that counts gives it, else all members get an error. src may be its part of dst, as in Gather. Collective. One barrier in which
// members tell their lengths (ceil(log2 n) reads), and then as Gather for the longest src.
func GatherV[T any](ctx context.Context, t *pgsync.Team, dst []T, counts []int, src []T, root int) error {
	const op = "gatherv"
	return gatherV(ctx, t, op, dst, counts, src, root, checked[T](t, op, root))
}

// AllGatherV is GatherV to all members: all give counts, which agree. Collective. One barrier in which members tell their lengths, and then as
// pgsync.AllGather for the longest src.
func AllGatherV[T any](ctx context.Context, t *pgsync.Team, dst []T, counts []int, src []T) error {
	const op = "allgatherv"
	return gatherV(ctx, t, op, dst, counts, src, everyone, checked[T](t, op, 0))
}

// everyone is the root of what all members get.
const everyone = -1

// gatherV gathers to root, or everyone, unless err says why the call cannot be.
func gatherV[T any](ctx context.Context, t *pgsync.Team, op string, dst []T, counts []int, src []T, root int, err error) error {
	wants := root == everyone || root == t.Rank()
	if err == nil && wants {
		err = checkCounts(t, op, "dst", counts, len(dst))
	}
	if err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.Collective(ctx, op)
	if err != nil {
		return err
	}
	return c.End(gatherTurns(ctx, t, c, plain(t, dst), counts, plain(t, src), root))
}

// gatherTurns moves the elements; the caller has checked the arguments of this member alone.
func gatherTurns[T any](ctx context.Context, t *pgsync.Team, c turns, to []T, counts []int, from []T, root int) error {
	dst, src, elem, width := mem.Of(to), mem.Of(from), atom.TypeCode[T](), mem.SizeOf[T]()
	mine, all := []uint64{uint64(src.Bytes)}, make([]uint64, t.Size())
	if err := c.Gather(ctx, elem, 0, root+1, mem.Of(mine).Data(), mem.Of(all).Data()); err != nil {
		return err
	}
	longest, at := 0, make([]int, len(all)+1)
	for m, bytes := range all {
		longest, at[m+1] = max(longest, int(bytes)), at[m]+int(bytes)
		if (root == everyone || root == t.Rank()) && uint64(counts[m]*width) != bytes {
			return c.Mismatch(m, fmt.Sprintf("rank %d gives %d elements, counts on this rank say %d", t.WorldRank(m), int(bytes)/width, counts[m]))
		}
	}
	if root == everyone {
		return c.AllGather(ctx, elem, longest, at, src, dst)
	}
	if begin := func(m int) int { return at[m] }; c.Collected(begin) {
		return c.GatherParts(ctx, elem, longest, root, begin, src, dst)
	}
	done, err := c.Offered(ctx, elem, longest, everyone, longest, c.Part(true), func(m int) bool { return all[m] == 0 }, src, dst, func(m int) (from, to, bytes int) {
		if t.Rank() == root {
			to, bytes = at[m], int(all[m])
		}
		return 0, to, bytes
	})
	if done || err != nil {
		return err
	}
	if err := c.Widen(ctx, elem, 0, longest, longest); err != nil {
		return err
	}
	return rounds(longest, c.Payload(), func(lo, hi int) error {
		begin, end := overlap(lo, hi, 0, src.Bytes)
		if end > begin {
			c.Write(0, src.Slice(begin, end-begin))
		}
		if err := c.TurnTo(ctx, elem, longest, root, hi, longest); err != nil || t.Rank() != root {
			return err
		}
		return c.ReadAll(dst, func(m int) (from, to, bytes int) {
			begin, end := overlap(lo, hi, 0, counts[m]*width)
			return 0, at[m] + min(begin, counts[m]*width), end - begin
		})
	})
}
