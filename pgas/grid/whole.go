package grid

import (
	"context"
	"fmt"
	"iter"
	"slices"

	pgsync "gopgas/sync"
	"gopgas/transport"
)

// Local returns this rank's part, ghost cells included, as ordinary memory, and how far apart neighbours lie in it in each dimension. The element that is
// (i, j, …) counted from the block's first is at (i+Ghost[0])*strides[0] + (j+Ghost[1])*strides[1] + …. There are no elements after Free.
func (a *Array[T]) Local() (elements []T, strides []int) {
	part := a.w.Local()
	return part[:min(a.all, len(part))], slices.Clone(a.by[:a.n])
}

// Row returns the elements of this rank's block that differ in the last index only: ordinary memory. at has the other indices, counted from the block's first
// element. With ghost cells a row begins and ends with those, so that element k of the block is number Ghost+k, and an index goes from -Ghost to Ghost behind the
// last. It panics outside. It does not allocate.
func (a *Array[T]) Row(at ...int) []T {
	last := a.n - 1
	from := 0
	inside := len(at) == last
	for d := 0; inside && d < last; d++ {
		i := at[d] + a.ghost[d]
		inside = uint(i) < uint(a.extent(d, a.mine[d]))
		from += i * a.by[d]
	}
	if !inside {
		// bug: an index out of range, as with a slice
		panic(fmt.Sprintf("grid: row %v of a block of %v with ghost cells of width %v", slices.Clone(at), a.Block(a.Team().Rank()).Shape(), a.ghost[:a.n]))
	}
	n := a.extent(last, a.mine[last])
	return a.w.Local()[from : from+n : from+n]
}

// rows iterates over the rows of this rank's block without their ghost cells, with the global index of each one's first element; the index is the
// iteration's own.
func (a *Array[T]) rows() iter.Seq2[[]int, []T] {
	return func(yield func([]int, []T) bool) {
		b := a.Block(a.Team().Rank())
		if b.Len() == 0 || len(a.w.Local()) == 0 { // there are no elements after Free
			return
		}
		last := a.n - 1
		n, g := b.Hi[last]-b.Lo[last], a.ghost[last]
		at, in := slices.Clone(b.Lo), make([]int, last)
		for {
			if !yield(at, a.Row(in...)[g:g+n]) {
				return
			}
			d := last - 1
			for ; d >= 0; d-- {
				at[d]++
				in[d]++
				if at[d] < b.Hi[d] {
					break
				}
				at[d], in[d] = b.Lo[d], 0
			}
			if d < 0 {
				return
			}
		}
	}
}

// Mine iterates over the elements that this rank owns, with their global indices; the pointers allow to change them in place. The slice of the index is
// the same one at each step, and not to be kept or changed. There are no elements after Free.
//
//	for at, x := range a.Mine() {
//		*x = float64(at[0] + at[1] + at[2])
//	}
func (a *Array[T]) Mine() iter.Seq2[[]int, *T] {
	return func(yield func([]int, *T) bool) {
		last := a.n - 1
		for at, row := range a.rows() {
			first := at[last]
			for k := range row {
				at[last] = first + k
				if !yield(at, &row[k]) {
					return
				}
			}
			at[last] = first
		}
	}
}

// Owned iterates over this rank's elements in pieces of ordinary memory, in ascending order of their indices. pgas.Reduce combines them all.
func (a *Array[T]) Owned() iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for _, row := range a.rows() {
			if !yield(row) {
				return
			}
		}
	}
}

// Fill sets every element to v. Collective; it is a Fence before and after.
func (a *Array[T]) Fill(ctx context.Context, v T) error {
	return a.Apply(ctx, func([]int, T) T { return v })
}

// appliedBetween is how many elements are set before ctx is looked at again.
const appliedBetween = 1 << 16

// Apply sets every element to f of its index and its value; each member does so for its own, in any order. The index is f's until it returns.
// Collective; it is a Fence before and after.
func (a *Array[T]) Apply(ctx context.Context, f func(at []int, v T) T) error {
	const op = "apply"
	t := a.Team()
	return t.Abandon(op, t.Guard(op, func() error { return a.apply(ctx, f) }))
}

func (a *Array[T]) apply(ctx context.Context, f func(at []int, v T) T) error {
	if err := a.Fence(ctx); err != nil {
		return err
	}
	n, own := 0, make([]int, a.n) // f may change its index, and the iteration goes by at
	for at, x := range a.Mine() {
		if n%appliedBetween == 0 && ctx != nil { // nothing here waits, which is what would find out
			if err := context.Cause(ctx); err != nil {
				return err
			}
		}
		n++
		copy(own, at)
		*x = f(own, *x)
	}
	return a.Fence(ctx)
}

// CopyFrom copies the elements of src, which has the same shape on the same team, and any layout. Ghost cells are not copied. Collective; it is a Fence of
// both before and after.
func (a *Array[T]) CopyFrom(ctx context.Context, src *Array[T]) error {
	return a.CopyBox(ctx, a.Whole(), src, src.Whole())
}

// CopyBox copies box from of src to box to of a: those have as many elements in each dimension. The arrays are different ones on the same team, with
// any layouts. Collective, with the same boxes everywhere; it is a Fence of both before, and of a after. (Global Arrays: NGA_Copy_patch.)
func (a *Array[T]) CopyBox(ctx context.Context, to Box, src *Array[T], from Box) error {
	const op = "copy"
	mine, first, near, theirs, err := a.share(to, src, from)
	if err != nil {
		return a.Team().Refuse(ctx, op, transport.NewOpError(op, -1, err))
	}
	err = src.Fence(ctx)
	if err == nil {
		err = a.Fence(ctx)
	}
	if err == nil && mine > 0 {
		err = src.move(false, &theirs, a.w.Local(), first, near)
	}
	if err == nil {
		err = a.Fence(ctx)
	}
	return a.Team().Abandon(op, err)
}

// share returns what this rank gets in a copy: how many elements, where in its part they begin, how far apart they are, and which ones of src they are.
func (a *Array[T]) share(to Box, src *Array[T], from Box) (n, at int, near dims, theirs lines, err error) {
	mine, err := a.lines(to, to.Len(), false)
	if err != nil {
		return 0, 0, near, theirs, err
	}
	if theirs, err = src.lines(from, from.Len(), false); err != nil {
		return 0, 0, near, theirs, err
	}
	if src == a || src.Team() != a.Team() || !slices.Equal(to.Shape(), from.Shape()) {
		return 0, 0, near, theirs, fmt.Errorf("%w: a copy of %v of %v to %v of %v; needed different arrays on one team, and boxes of one shape",
			pgsync.ErrMismatch, from, src, to, a)
	}
	n = 1
	for d := range a.n {
		ln, of, k := mine.of[d], &theirs.of[d], a.mine[d]
		lo, hi := a.starts[d][k], a.starts[d][k+1]
		first := min(ln.n, ln.before(lo))
		of.lo, of.n = of.lo+first*of.step, min(ln.n, ln.before(hi))-first
		at += (ln.lo + first*ln.step - lo + a.ghost[d]) * a.by[d]
		near[d] = a.by[d] * ln.step
		n *= of.n
	}
	theirs.len = n
	return n, at, near, theirs, nil
}

// before returns how many elements of a line that does not end come before index i.
func (ln line) before(i int) int { return max(0, (i-ln.lo+ln.step-1)/ln.step) }
