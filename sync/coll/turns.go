package coll

import (
	"context"
	"fmt"

	"gopgas/internal/mem"
	pgsync "gopgas/sync"
	"gopgas/transport"
)

// turns is a collective call that goes on: what pgsync's Team.Collective returns. See there for what its methods do.
type turns interface {
	Payload() int
	Widen(ctx context.Context, elem, detail, n, bytes int) error
	Slot() int
	Apart() bool
	Slips(bytes int) bool
	Hand(ctx context.Context, elem, detail, n, root int, from mem.Range, bytes, every int) error
	Inbox(alone bool) int
	Part(alone bool) int
	Offered(ctx context.Context, elem, n, root, bytes, part int, absent func(m int) bool, mine, dst mem.Range, of func(m int) (from, to, bytes int)) (done bool, err error)
	HandPart(ctx context.Context, elem, n, root int, from mem.Range, part, lo, hi int) error
	Slip(member int, dst mem.Range) error
	Write(off int, data mem.Range)
	Turn(ctx context.Context, elem, detail, n, root int) error
	TurnFrom(ctx context.Context, elem, n, root, hi, bytes int) error
	TurnTo(ctx context.Context, elem, n, root, hi, bytes int) error
	Gather(ctx context.Context, elem, detail, n int, mine, all []byte) error
	GatherTo(ctx context.Context, elem, detail, n, root int, mine, all []byte) error
	Circle() int
	AllGather(ctx context.Context, elem, n int, at []int, mine, all mem.Range) error
	Nodes() int
	Collected(at func(m int) int) bool
	Dealt(at func(m int) int) bool
	GatherParts(ctx context.Context, elem, n, root int, at func(m int) int, mine, all mem.Range) error
	ScatterParts(ctx context.Context, elem, n, root int, at func(m int) int, dst, src mem.Range) error
	InSlices(part, turns int) int
	ShuffleParts(ctx context.Context, elem, n, slice int, dst, src mem.Range) error
	Shuffle(ctx context.Context, elem, n int, dst, src mem.Range) error
	ShuffleBytes() int
	Prefix(ctx context.Context, elem, detail, n int, inclusive bool, dst, src mem.Range, fold func(into, from mem.Range)) error
	PrefixBytes() int
	Read(member, off int, dst mem.Range) error
	Everybody() []int
	SeeEach(off, n int, of []int, buf *[]byte, f func(member int, theirs mem.Range)) error
	PushAll(ctx context.Context, src mem.Range, of func(member int) (from, bytes int)) error
	Take(member int, dst mem.Range) error
	ReadAll(dst mem.Range, of func(member int) (from, to, bytes int)) error
	Mismatch(member int, what string) error
	End(err error) error
}

// checked returns why a collective over elements T with root cannot be.
func checked[T any](t *pgsync.Team, op string, root int) error {
	if err := mem.CheckElem[T](); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	if root < 0 || root >= t.Size() {
		return transport.NewOpError(op, root, fmt.Errorf("%w: root %d of a team of %d", pgsync.ErrMember, root, t.Size()))
	}
	return nil
}

// wrongLength is the error of a slice that should have another length.
func wrongLength(op, what string, have, need int) error {
	return transport.NewOpError(op, -1, fmt.Errorf("%w: %s has %d elements, needs %d", pgsync.ErrMismatch, what, have, need))
}

// checkCounts returns why counts, of the elements of slice what with have elements, cannot be.
func checkCounts(t *pgsync.Team, op, what string, counts []int, have int) error {
	if len(counts) != t.Size() {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: %d counts for %s in a team of %d", pgsync.ErrMismatch, len(counts), what, t.Size()))
	}
	sum := 0
	for m, n := range counts {
		if n < 0 || n > have-sum {
			return transport.NewOpError(op, -1, fmt.Errorf("%w: counts for %s go beyond its %d elements at member %d", pgsync.ErrMismatch, what, have, m))
		}
		sum += n
	}
	if sum != have {
		return wrongLength(op, what, have, sum)
	}
	return nil
}

// begins returns where each member's part of counts elements of width bytes begins, and behind the last one the whole.
func begins(counts []int, width int) []int {
	at := make([]int, len(counts)+1)
	for m, n := range counts {
		at[m+1] = at[m] + n*width
	}
	return at
}

// rounds calls f for each piece of bytes that fits in payload; at least once.
func rounds(bytes, payload int, f func(lo, hi int) error) error {
	for lo := 0; ; lo += payload {
		if err := f(lo, min(lo+payload, bytes)); err != nil {
			return err
		}
		if lo+payload >= bytes {
			return nil
		}
	}
}

// overlap returns what the stretches [lo, hi) and [from, to) have in common; nothing where begin is end.
func overlap(lo, hi, from, to int) (begin, end int) {
	begin, end = max(lo, from), min(hi, to)
	return begin, max(begin, end)
}

// plain returns memory that a call was given as the library uses it: unseen by the race check.
func plain[T any](t *pgsync.Team, s []T) []T {
	if t.RaceCheck() == nil || len(s) == 0 {
		return s
	}
	return mem.Slice[T](t.RaceCheck().PlainRange(mem.Of(s)))
}
