package pgas

import (
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/racecheck"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// shortRun is how many bytes one after the other make a transfer of their own worth while; shorter ones go together.
const shortRun = 512

// Gather gets element at[i] to dst[i] for all i, whoever owns them, and returns when all are there. Through a NIC they
// come in chains of many, over all owners at once.
func (a *Array[T]) Gather(dst []T, at []int) error {
	if err := a.list("gather", len(dst), at); err != nil {
		return err
	}
	return a.w.Gather(dst, func(i int) (int, int) { return a.d.owner(at[i]) })
}

// Scatter puts src[i] to element at[i] for all i, whoever owns them. It completes like a Put. Where an element is named
// twice, one of its values stays.
func (a *Array[T]) Scatter(src []T, at []int) error {
	if err := a.list("scatter", len(src), at); err != nil {
		return err
	}
	return a.w.Scatter(src, func(i int) (int, int) { return a.d.owner(at[i]) })
}

// list verifies a list of indices before anything moves.
func (a *Array[T]) list(op string, values int, at []int) error {
	if values != len(at) {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: %d values for %d indices", ErrRange, values, len(at)))
	}
	for _, i := range at {
		if err := a.d.check(i, 1); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	return nil
}

// GetStrided gets elements lo, lo+step, lo+2*step … to dst, whoever owns them. step is not 0; it may be negative.
func (a *Array[T]) GetStrided(lo, step int, dst []T) error {
	if err := a.stride("get-strided", lo, step, len(dst)); err != nil {
		return err
	}
	return a.w.Gather(dst, func(i int) (int, int) { return a.d.owner(lo + i*step) })
}

// PutStrided puts src to elements lo, lo+step, lo+2*step …, whoever owns them. step is not 0; it may be negative.
func (a *Array[T]) PutStrided(lo, step int, src []T) error {
	if err := a.stride("put-strided", lo, step, len(src)); err != nil {
		return err
	}
	return a.w.Scatter(src, func(i int) (int, int) { return a.d.owner(lo + i*step) })
}

// stride verifies n elements from lo on, step apart.
func (a *Array[T]) stride(op string, lo, step, n int) error {
	bad := step == 0
	switch {
	case n == 0:
		return transport.NewOpError(op, -1, a.d.check(lo, 0))
	case lo < 0 || lo >= a.d.n:
		bad = true
	case step > 0:
		bad = n-1 > (a.d.n-1-lo)/step
	case step < 0: // of the smallest step the negative is itself, and the quotient is 0 as it should
		bad = n-1 > lo/-step
	}
	if bad {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: %d elements from %d on, %d apart, of an array of %d", ErrRange, n, lo, step, a.d.n))
	}
	return nil
}

// Accumulate combines src into the elements of a from lo on, whoever owns them, each atomically, the whole not. It is
// ordered and flushed like a Put. Of a layout that is dealt out what an owner has of the range travels as one, by way of a buffer of up to 1 MiB that the array keeps.
func Accumulate[T pgsync.Number](a *Array[T], lo int, src []T, op pgsync.Op) error {
	if err := a.check("accumulate", lo, len(src)); err != nil {
		return err
	}
	if a.d.dealt() && a.d.p > 1 {
		return accumulateDealt(a, lo, src, op)
	}
	for len(src) > 0 {
		member, disp := a.d.owner(lo)
		n := min(a.d.run(lo), len(src))
		if err := window.Accumulate(a.w, member, disp, src[:n], op); err != nil {
			return err
		}
		lo, src = lo+n, src[n:]
	}
	return nil
}

// accumulateDealt combines the elements from lo on of a layout that deals blocks out: what an owner has of them is next to each other in its part.
func accumulateDealt[T pgsync.Number](a *Array[T], lo int, src []T, op pgsync.Op) error {
	spare := a.spare.Swap(nil)
	if spare == nil {
		spare = new([]T)
	}
	defer a.spare.Store(spare)
	check := a.Team().RaceCheck()
	read := racecheck.Access{Kind: racecheck.Read, Site: check.Site("accumulate")}
	src = mem.Slice[T](check.PlainRange(mem.Of(src))) // the check is told what is used of it
	var few [together]window.Piece
	for step := max(1, dealtOnce/a.elemBytes()); len(src) > 0; {
		n := min(step, len(src))
		for _, p := range a.d.pieces(lo, n, few[:0]) {
			row := func(i int) []T { return src[p.Near+i*p.NearStride:][:p.Cols] }
			if _, near := a.w.Shared(p.Target); p.Rows == 1 || near && p.Cols*a.elemBytes() >= shortRun {
				for i := range p.Rows {
					if err := window.Accumulate(a.w, p.Target, p.Disp+i*p.Stride, row(i), op); err != nil {
						return err
					}
				}
				continue
			}
			packed := (*spare)[:0]
			for i := range p.Rows {
				packed = append(packed, row(i)...)
				check.Near(read, mem.Of(row(i)).Addr(), p.Cols*a.elemBytes())
			}
			*spare = packed
			if err := window.Accumulate(a.w, p.Target, p.Disp, packed, op); err != nil {
				return err
			}
		}
		lo, src = lo+n, src[n:]
	}
	return nil
}

// ScatterAccumulate combines src[i] into element at[i] for all i, whoever owns them, each atomically and in any order. It completes
// like an Accumulate. Through a NIC many travel together: it is how a histogram counts and a random table is updated.
func ScatterAccumulate[T pgsync.Number](a *Array[T], at []int, src []T, op pgsync.Op) error {
	if err := a.list("scatter-accumulate", len(src), at); err != nil {
		return err
	}
	return window.ScatterAccumulate(a.w, func(i int) (int, int) { return a.d.owner(at[i]) }, src, op)
}

// GatherAccumulate is ScatterAccumulate that also stores what the elements were in old, which is as long as src and may be src
// itself, and returns when that is there. With Sum it is a fetch-add at each index.
func GatherAccumulate[T pgsync.Number](a *Array[T], at []int, src, old []T, op pgsync.Op) error {
	if err := a.list("gather-accumulate", len(src), at); err != nil {
		return err
	}
	return window.GatherAccumulate(a.w, func(i int) (int, int) { return a.d.owner(at[i]) }, src, old, op)
}

// Ptr returns the global pointer to element i. It panics if there is no such element.
func (a *Array[T]) Ptr(i int) Ptr[T] {
	member, disp := a.Owner(i)
	return Ptr[T]{a.w, member, disp}
}
