package coll

import (
	"context"
	"fmt"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	pgsync "gopgas/sync"
)

// Scatter copies the parts of root's src, which has Size times the length of dst, to the members' dst, in the order of
// members; src is not looked at elsewhere. All dst have the same length. Root's dst may be its part of src, and shares no memory with it otherwise. Collective. A src that fits into an outbox takes a barrier, and each
// member reads its part from root. Of a longer one root puts an outbox-full to every member at once, and there is a barrier for each
// outbox-full of dst; where up to 8 members push to each other over a NIC it does so of short ones, too, and the next outbox-full sets out while the last is copied. Where members share nodes, and what is for a node fits into an outbox, it travels to a node in one piece, from which the members of the
// node read: one barrier. Among up to 8 members that are alike root does not wait for the others where what it has fits into an outbox: it is no barrier.
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
	s := stream{c: c, elem: atom.TypeCode[T](), n: len(dst), root: root}
	s.at, s.longest = func(m int) int { return m * mine.Bytes }, mine.Bytes
	return c.End(s.run(ctx, t, mine, mem.Of(src)))
}

// stream is a src of root's on its way to the members.
type stream struct {
	c             turns
	elem, n, root int             // what all members agree on
	at            func(m int) int // where in src member m's part begins, and behind the last one where src ends
	longest       int             // the bytes of the longest part
}

func (s *stream) run(ctx context.Context, t *pgsync.Team, dst, src mem.Range) error {
	if s.c.Dealt(s.at) {
		return s.c.ScatterParts(ctx, s.elem, s.n, s.root, s.at, dst, src)
	}
	done, err := s.c.Offered(ctx, s.elem, s.n, s.root, s.longest, s.c.Part(true), nil, src, dst, func(m int) (from, to, bytes int) {
		if m == s.root {
			from, bytes = s.at(t.Rank()), dst.Bytes
		}
		return from, 0, bytes
	})
	if done || err != nil {
		return err
	}
	whole := s.at(t.Size())
	if alike := s.longest > 0 && whole == s.longest*t.Size(); alike && s.c.Inbox(true) > 0 {
		return s.handed(ctx, t, dst, src)
	} else if alike && s.c.Slips(s.longest) {
		return s.handedPart(ctx, t, dst, src, 0, s.longest)
	}
	most := whole
	if s.c.Apart() { // what is pushed lies in the outboxes of those whom it is for
		most = s.longest
	}
	if err := s.c.Widen(ctx, s.elem, 0, s.n, most); err != nil {
		return err
	}
	if !pushes(t.Size(), whole, s.c.Payload()) {
		return s.pulled(ctx, t, dst, src, whole)
	}
	return s.pushed(ctx, t, dst, src)
}

// handed has root push to the members what is theirs, of one length, a part in each turn.
func (s *stream) handed(ctx context.Context, t *pgsync.Team, dst, src mem.Range) error {
	if s.longest > s.c.Inbox(true) {
		if err := s.c.Widen(ctx, s.elem, 0, s.n, s.longest); err != nil {
			return err
		}
	}
	return rounds(s.longest, s.c.Inbox(true), func(lo, hi int) error { return s.handedPart(ctx, t, dst, src, lo, hi) })
}

// handedPart has root hand out bytes lo to hi of what is each member's.
func (s *stream) handedPart(ctx context.Context, t *pgsync.Team, dst, src mem.Range, lo, hi int) error {
	if t.Rank() != s.root {
		src = mem.Range{}
	}
	if err := s.c.HandPart(ctx, s.elem, s.n, s.root, src, s.longest, lo, hi); err != nil {
		return err
	}
	mine := dst.Slice(lo, hi-lo)
	if t.Rank() != s.root {
		return s.c.Slip(s.root, mine)
	}
	mem.Copy(mine.Data(), src.Slice(s.root*s.longest+lo, hi-lo).Data())
	return nil
}

// pulled has src go through root's outbox, piece by piece, of which the members read what is theirs.
func (s *stream) pulled(ctx context.Context, t *pgsync.Team, dst, src mem.Range, whole int) error {
	from := s.at(t.Rank())
	return rounds(whole, s.c.Payload(), func(lo, hi int) error {
		if t.Rank() == s.root {
			s.c.Write(0, src.Slice(lo, hi-lo))
		}
		if err := s.c.TurnFrom(ctx, s.elem, s.n, s.root, hi, whole); err != nil {
			return err
		}
		begin, end := overlap(lo, hi, from, from+dst.Bytes)
		if begin == end {
			return nil
		}
		part := dst.Slice(begin-from, end-begin)
		if t.Rank() == s.root {
			mem.Copy(part.Data(), src.Slice(begin, end-begin).Data())
			return nil
		}
		return s.c.Read(s.root, begin-lo, part)
	})
}

// pushed has root put pieces of all parts into the members' outboxes.
func (s *stream) pushed(ctx context.Context, t *pgsync.Team, dst, src mem.Range) error {
	return rounds(s.longest, s.c.Payload(), func(lo, hi int) error {
		if t.Rank() == s.root {
			err := s.c.PushAll(ctx, src, func(m int) (from, bytes int) {
				begin, end := overlap(lo, hi, 0, s.at(m+1)-s.at(m))
				return s.at(m) + min(begin, s.at(m+1)-s.at(m)), end - begin
			})
			if err != nil {
				return err
			}
		}
		if err := s.c.Turn(ctx, s.elem, 0, s.n, s.root); err != nil {
			return err
		}
		begin, end := overlap(lo, hi, 0, dst.Bytes)
		if begin == end {
			return nil
		}
		part := dst.Slice(begin, end-begin)
		if t.Rank() == s.root {
			mem.Copy(part.Data(), src.Slice(s.at(s.root)+begin, end-begin).Data())
			return nil
		}
		return s.c.Take(s.root, part)
	})
}

// ScatterV is Scatter of different lengths: counts[m] elements for member m. counts and src are looked at on root only, and
// each member's dst must have the length that counts gives it, else all members get an error. dst may be its part of src, as in Scatter. Collective. One barrier in
// which members tell their lengths, and then as Scatter for the longest dst.
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
	elem, width := atom.TypeCode[T](), mem.SizeOf[T]()
	mine, all := []uint64{uint64(len(dst) * width)}, make([]uint64, t.Size())
	if err := c.Gather(ctx, elem, 0, root, mem.Of(mine).Data(), mem.Of(all).Data()); err != nil {
		return c.End(err)
	}
	s := stream{c: c, elem: elem, root: root}
	at := make([]int, 1, t.Size()+1)
	for m, bytes := range all {
		if t.Rank() == root && uint64(counts[m]*width) != bytes {
			return c.End(c.Mismatch(m, fmt.Sprintf("rank %d takes %d elements, counts on this rank say %d", t.WorldRank(m), int(bytes)/width, counts[m])))
		}
		s.n += int(bytes)
		at = append(at, s.n)
		s.longest = max(s.longest, int(bytes))
	}
	s.at = func(m int) int { return at[m] }
	return c.End(s.run(ctx, t, mem.Of(plain(t, dst)), mem.Of(plain(t, src))))
}
