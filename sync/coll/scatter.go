package coll

import (
	"context"
	"fmt"

	"gopgas/internal/mem"
	pgsync "gopgas/sync"
)

// Scatter copies the parts of root's src, which has Size times the length of dst, to the members' dst, in the order of
// members; src is not looked at elsewhere. All dst have the same length. Collective. For each outbox-full of src it takes a
// barrier, and each member reads its part from root.
func Scatter[T any](ctx context.Context, t *pgsync.Team, dst, src []T, root int) error {
	const op = "scatter"
	err := checked[T](t, op, root)
	if err == nil && t.Rank() == root && len(src) != len(dst)*t.Size() {
		err = wrongLength(op, "src", len(src), len(dst)*t.Size())
	}
	if err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.Collective(ctx, op)
	if err != nil {
		return err
	}
	dst, src = plain(t, dst), plain(t, src)
	mine := mem.Of(dst)
	s := stream{c: c, width: mem.SizeOf[T](), n: len(dst), root: root}
	s.from, s.to = t.Rank()*mine.Bytes, (t.Rank()+1)*mine.Bytes
	return c.End(s.run(ctx, t, mine, mem.Of(src), mine.Bytes*t.Size()))
}

// stream is a src of root's that goes through its outbox, piece by piece, of which this member reads bytes [from, to).
type stream struct {
	c              turns
	width, n, root int // what all members agree on
	from, to       int
}

func (s *stream) run(ctx context.Context, t *pgsync.Team, dst, src mem.Range, whole int) error {
	return rounds(whole, s.c.Payload(), func(lo, hi int) error {
		if t.Rank() == s.root {
			s.c.Write(0, src.Slice(lo, hi-lo))
		}
		if err := s.c.Turn(ctx, s.width, 0, s.n, s.root); err != nil {
			return err
		}
		begin, end := overlap(lo, hi, s.from, s.to)
		if begin == end {
			return nil
		}
		part := dst.Slice(begin-s.from, end-begin)
		if t.Rank() == s.root {
			copy(part.Data(), src.Slice(begin, end-begin).Data())
			return nil
		}
		return s.c.Read(s.root, begin-lo, part)
	})
}

// ScatterV is Scatter of different lengths: counts[m] elements for member m. counts and src are looked at on root only, and
// each member's dst must have the length that counts gives it, else all members get an error. Collective. One barrier in
// which members tell their lengths, and then as Scatter.
func ScatterV[T any](ctx context.Context, t *pgsync.Team, dst, src []T, counts []int, root int) error {
	const op = "scatterv"
	err := checked[T](t, op, root)
	if err == nil && t.Rank() == root {
		err = checkCounts(t, op, "src", counts, len(src))
	}
	if err != nil {
		return t.Refuse(ctx, op, err)
	}
	c, err := t.Collective(ctx, op)
	if err != nil {
		return err
	}
	width := mem.SizeOf[T]()
	mine, all := []uint64{uint64(len(dst) * width)}, make([]uint64, t.Size())
	if err := c.Gather(ctx, width, 0, root, mem.Of(mine).Data(), mem.Of(all).Data()); err != nil {
		return c.End(err)
	}
	s := stream{c: c, width: width, root: root}
	for m, bytes := range all {
		if t.Rank() == root && uint64(counts[m]*width) != bytes {
			return c.End(c.Mismatch(m, fmt.Sprintf("rank %d takes %d elements, counts on this rank say %d", t.WorldRank(m), int(bytes)/width, counts[m])))
		}
		if m == t.Rank() {
			s.from, s.to = s.n, s.n+int(bytes)
		}
		s.n += int(bytes)
	}
	return c.End(s.run(ctx, t, mem.Of(plain(t, dst)), mem.Of(plain(t, src)), s.n))
}
