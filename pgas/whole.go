package pgas

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/sched"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// Fill sets every element to v. Collective; it is a Fence before and after.
func (a *Array[T]) Fill(ctx context.Context, v T) error {
	return a.Apply(ctx, func(int, T) T { return v })
}

// Apply sets every element to f of its index and its value; each member does so for its own, in any order, so f must not
// depend on other elements. Collective; it is a Fence before and after.
func (a *Array[T]) Apply(ctx context.Context, f func(i int, v T) T) error {
	const op = "apply"
	t := a.Team()
	return t.Abandon(op, t.Guard(op, func() error { return a.apply(ctx, f) }))
}

func (a *Array[T]) apply(ctx context.Context, f func(i int, v T) T) error {
	if err := a.Fence(ctx); err != nil {
		return err
	}
	local, me := a.Local(), a.Team().Rank()
	err := a.pieces(ctx, func(lo, n int) error {
		for disp := lo; disp < lo+n; disp++ {
			local[disp] = f(a.d.index(me, disp), local[disp])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.Fence(ctx)
}

// Combine sets every element of a to f of the elements of x and y with the same index. x and y are as long as a and on
// the same team; their layouts may differ, and both may be a itself if they have its layout. Collective; it is a Fence
// of all three before and after.
func (a *Array[T]) Combine(ctx context.Context, x, y *Array[T], f func(x, y T) T) error {
	const op = "combine"
	for _, o := range []*Array[T]{x, y} {
		if err := a.alike(op, o); err != nil {
			return a.Team().Refuse(ctx, op, err)
		}
	}
	t := a.Team()
	return t.Abandon(op, t.Guard(op, func() error { return a.combine(ctx, x, y, f) }))
}

func (a *Array[T]) combine(ctx context.Context, x, y *Array[T], f func(x, y T) T) error {
	for _, o := range []*Array[T]{x, y, a} {
		if err := o.Fence(ctx); err != nil {
			return err
		}
	}
	local := a.Local()
	var bufs [2][]T
	err := a.pieces(ctx, func(lo, n int) error {
		from, err := x.read(a, lo, n, &bufs[0])
		if err != nil {
			return err
		}
		with, err := y.read(a, lo, n, &bufs[1])
		if err != nil {
			return err
		}
		for k := range n {
			local[lo+k] = f(from[k], with[k])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.Fence(ctx)
}

// CopyFrom copies the elements of src, which has as many on the same team, in any layout. Collective; it is a Fence of
// both before and after.
func (a *Array[T]) CopyFrom(ctx context.Context, src *Array[T]) error {
	const op = "copy"
	if err := a.alike(op, src); err != nil {
		return a.Team().Refuse(ctx, op, err)
	}
	return a.Team().Abandon(op, a.copyFrom(ctx, src, a.d.n))
}

// copyFrom copies the first n elements of src, at most as many as either has.
func (a *Array[T]) copyFrom(ctx context.Context, src *Array[T], n int) error {
	if err := src.Fence(ctx); err != nil {
		return err
	}
	if err := a.Fence(ctx); err != nil {
		return err
	}
	err := a.moveFrom(ctx, src, n)
	if err != nil {
		return err
	}
	return a.Fence(ctx)
}

// moveFrom moves this member's share of the first n elements of src: those that a range of this rank's in a is to have, or that it has in src, or else, as many as each
// other member, one range. So what goes to or comes from a member is one piece of its part.
func (a *Array[T]) moveFrom(ctx context.Context, src *Array[T], n int) error {
	me := a.Team().Rank()
	switch {
	case a.d.same(src.d) || !a.d.dealt():
		local := a.Local()
		return a.pieces(ctx, func(lo, k int) error {
			k = a.d.below(n, me, lo, k)
			return src.readTo(a, lo, local[lo:lo+k])
		})
	case !src.d.dealt():
		local := src.Local()
		return src.pieces(ctx, func(lo, k int) error {
			if k = src.d.below(n, me, lo, k); k == 0 {
				return nil
			}
			return a.Put(src.d.index(me, lo), local[lo:lo+k])
		})
	}
	mine, buf := newDist(Block(), n, a.d.p), []T(nil)
	return inPieces(ctx, mine.count(me), func(lo, k int) error {
		buf = slices.Grow(buf[:0], k)[:k]
		lo = mine.index(me, lo)
		if err := src.Get(lo, buf); err != nil {
			return err
		}
		return a.Put(lo, buf)
	})
}

// below is how many of k elements of a member's part, from place lo on, are among the first n of the array: local ones ascend.
func (d dist) below(n, member, lo, k int) int {
	return sort.Search(k, func(i int) bool { return d.index(member, lo+i) >= n })
}

// alike verifies that o is on a's team and has as many elements.
func (a *Array[T]) alike(op string, o *Array[T]) error {
	if o.Team() != a.Team() {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: the arrays are on different teams", pgsync.ErrMismatch))
	}
	if o.d.n != a.d.n {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: an array of %d elements and one of %d", pgsync.ErrMismatch, a.d.n, o.d.n))
	}
	return nil
}

// wholePiece is how many elements of another array are held at once.
const wholePiece = 1 << 16

// pieces calls f for pieces of this rank's part, until ctx ends.
func (a *Array[T]) pieces(ctx context.Context, f func(lo, n int) error) error {
	return inPieces(ctx, a.localLen(), f)
}

// inPieces calls f for pieces of n elements, until ctx ends.
func inPieces(ctx context.Context, n int, f func(lo, n int) error) error {
	for lo := 0; lo < n; lo += wholePiece {
		if err := sched.Ended(ctx); err != nil {
			return err
		}
		if err := f(lo, min(wholePiece, n-lo)); err != nil {
			return err
		}
	}
	return nil
}

// read returns the elements of x with the indices that n elements of this rank's part of a, from lo on, have: in x's own
// memory if the layouts are the same, else in buf.
func (x *Array[T]) read(a *Array[T], lo, n int, buf *[]T) ([]T, error) {
	if x.d.same(a.d) {
		return x.Local()[lo : lo+n], nil
	}
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n], x.readTo(a, lo, (*buf)[:n])
}

// readTo is read into dst.
func (x *Array[T]) readTo(a *Array[T], lo int, dst []T) error {
	if x.d.same(a.d) {
		copy(dst, x.Local()[lo:])
		return nil
	}
	me := a.Team().Rank()
	if len(dst) > 0 && !a.d.dealt() {
		return x.Get(a.d.index(me, lo), dst)
	}
	return x.w.Gather(dst, func(k int) (int, int) { return x.d.owner(a.d.index(me, lo+k)) })
}

// Resize gives a another length or layout, or both; the elements that both lengths have are kept, the new ones are 0.
// Pointers into the array, its Window and Local end. Collective; it is a Fence. On an error a is as it was, but for one that comes when all members have the new elements
// and the old memory is given back, as where ctx ends then: Len says which it is.
func (a *Array[T]) Resize(ctx context.Context, n int, l Layout) error {
	const op = "resize"
	if err := there(op, a.w); err != nil { // before anything is made for it, which nobody would give back
		return a.Team().Refuse(ctx, op, err)
	}
	b, err := NewArray[T](ctx, a.Team(), n, l)
	if err != nil {
		return err
	}
	if err := b.copyFrom(ctx, a, min(n, a.d.n)); err != nil {
		return a.Team().AbandonMade(ctx, op, err, b.Free)
	}
	old := a.w
	a.w, a.d = b.w, b.d
	return a.Team().AbandonEnd(ctx, op, old.Free(ctx))
}

// there returns an error if the window of an array was freed.
func there[T any](op string, w *window.Window[T]) error {
	if err := w.Put(w.Team().Rank(), 0, nil); errors.Is(err, transport.ErrClosed) {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	return nil
}

// elements is what is spread over a team: an Array, a Matrix, or what a package above this one makes like them.
type elements[T any] interface {
	Team() *Team
	Fence(ctx context.Context) error
	// Owned iterates over this rank's elements in pieces.
	Owned() iter.Seq[[]T]
}

// Owned iterates over this rank's elements in pieces of ordinary memory, in order: one piece. Reduce combines them all.
func (a *Array[T]) Owned() iter.Seq[[]T] {
	return func(yield func([]T) bool) { yield(a.Local()) }
}

// Reduce combines all elements of x, an Array, a Matrix or what is made like them, by op, and returns the result, bit by bit the same, on every
// member: first each member its own, in order, then those results in the order of members. Collective; it is a Fence. An
// error if x has no elements.
func Reduce[T pgsync.Number](ctx context.Context, x elements[T], op pgsync.Op) (T, error) {
	const name = "reduce"
	kind := atom.ElemOf[T]()
	if err := reduces(kind, op); err != nil {
		return 0, x.Team().Refuse(ctx, name, transport.NewOpError(name, -1, err))
	}
	if err := x.Fence(ctx); err != nil {
		return 0, x.Team().Abandon(name, err)
	}
	var mine partial[T]
	look := lookout{ctx: ctx}
	for piece := range x.Owned() {
		for some := range slices.Chunk(piece, wholePiece) {
			if err := look.next(len(some)); err != nil {
				return 0, x.Team().Abandon(name, err)
			}
			for _, v := range some {
				mine.add(kind, op, v)
			}
		}
	}
	all, err := gathered(ctx, name, x.Team(), op, mine)
	if err != nil {
		return 0, err
	}
	var total partial[T]
	for _, p := range all {
		total.join(kind, op, p)
	}
	if !total.Any {
		return 0, transport.NewOpError(name, -1, fmt.Errorf("%w: nothing to reduce", ErrRange))
	}
	return total.Value, nil
}

// combine is op of two values; the common ones without a detour over their bits.
func combine[T pgsync.Number](kind atom.Elem, op pgsync.Op, a, b T) T {
	switch op {
	case pgsync.Sum:
		return a + b
	case pgsync.Prod:
		return a * b
	case pgsync.Min:
		return min(a, b)
	case pgsync.Max:
		return max(a, b)
	}
	pair := [2]T{a, b}
	x, y := mem.Of(pair[:1]), mem.Of(pair[1:])
	x.SetBits(atom.Combine(op, kind.Kind, x.Bits(), y.Bits(), 0))
	return pair[0]
}
