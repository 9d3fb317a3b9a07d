package grid

import (
	"fmt"

	"gopgas/pgas"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// Accumulate combines src into the elements of a box, whoever owns them, each atomically, the whole not. It is ordered and flushed like a Put, and returns
// when src may be reused; o is any that window.Accumulate takes. What lies together in an owner's part travels as one where that is long; where it is short,
// elements travel together as those of window.ScatterAccumulate. (Global Arrays: NGA_Acc, NGA_Strided_acc, which scale src by a factor; that is the caller's here.)
func Accumulate[T pgsync.Number](a *Array[T], b Box, src []T, o pgsync.Op) error {
	return accumulate("accumulate", a, b, src, o, false)
}

// AccumulatePeriodic is Accumulate into an array that goes on for ever, as GetPeriodic is Get from it. Where a box is larger than the array, all values of an
// element are combined into it. (Global Arrays: NGA_Periodic_acc.)
func AccumulatePeriodic[T pgsync.Number](a *Array[T], b Box, src []T, o pgsync.Op) error {
	return accumulate("accumulate-periodic", a, b, src, o, true)
}

// shortRun is how many bytes one after the other make an accumulate of their own worth while; shorter ones go together.
const shortRun = 512

func accumulate[T pgsync.Number](op string, a *Array[T], b Box, src []T, o pgsync.Op, around bool) error {
	ls, err := a.lines(b, len(src), around)
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	near := ls.packed(a.n)
	count := 0
	for w := a.walk(&ls, 0, near); w.more; w.next() {
		k, _ := runs(&w.piece)
		count += k
	}
	if count == 0 || len(src)/count*elemBytes((*T)(nil)) < shortRun {
		return window.ScatterAccumulate(a.w, func(i int) (int, int) {
			var at dims
			for d := range a.n {
				ln := &ls.of[d]
				at[d] = ln.lo + i/near[d]*ln.step
				i %= near[d]
				if size := a.shape[d]; uint(at[d]) >= uint(size) {
					at[d] = (at[d]%size + size) % size
				}
			}
			return a.owner(at[:a.n])
		}, src, o)
	}
	for w := a.walk(&ls, 0, near); w.more; w.next() {
		p := &w.piece
		k, length := runs(p)
		each := p.Cols / length // runs of a row
		for i := range k {
			r, c := i/each, i%each
			from := p.Near + r*p.NearStride + c*p.NearStep
			if err := window.Accumulate(a.w, p.Target, p.Disp+r*p.Stride+c*p.Step, src[from:from+length], o); err != nil {
				return err
			}
		}
	}
	return nil
}

// runs returns in how many pieces without gaps at either end a section lies, and how long each is.
func runs(p *window.Piece) (count, length int) {
	if p.Cols == 1 || p.Step == 1 && p.NearStep == 1 {
		return p.Rows, p.Cols
	}
	return p.Rows * p.Cols, 1
}

// FetchAdd adds v to an element atomically and returns the old value. (Global Arrays: NGA_Read_inc.) For other operations see window.FetchOr and its like, on
// Array.Window at Array.Owner.
func FetchAdd[T window.Word](a *Array[T], v T, at ...int) (T, error) {
	if err := a.check(at); err != nil {
		return v, transport.NewOpError("fetch-add", -1, err)
	}
	member, disp := a.owner(at)
	return window.FetchAdd(a.w, member, disp, v)
}

// FetchAddNB begins a FetchAdd. *old gets the old value; it belongs to the library until the handle is done. Many may be under way at once.
func FetchAddNB[T window.Word](a *Array[T], v T, old *T, at ...int) (window.Handle, error) {
	if err := a.check(at); err != nil {
		return window.Handle{}, transport.NewOpError("fetch-add", -1, err)
	}
	member, disp := a.owner(at)
	return window.FetchAddNB(a.w, member, disp, v, old)
}

// Swap sets an element to v atomically and returns the old value.
func Swap[T window.Word](a *Array[T], v T, at ...int) (T, error) {
	if err := a.check(at); err != nil {
		return v, transport.NewOpError("swap", -1, err)
	}
	member, disp := a.owner(at)
	return window.Swap(a.w, member, disp, v)
}

// CompareSwap sets an element to v if it is old, and returns what it was.
func CompareSwap[T window.Word](a *Array[T], old, v T, at ...int) (T, error) {
	if err := a.check(at); err != nil {
		return v, transport.NewOpError("compare-swap", -1, err)
	}
	member, disp := a.owner(at)
	return window.CompareSwap(a.w, member, disp, old, v)
}

// Gather gets the element at index at[i] to dst[i] for all i, whoever owns them, and returns when all are there. Through a NIC they come in chains of many,
// over all owners at once. (Global Arrays: NGA_Gather.)
func (a *Array[T]) Gather(dst []T, at [][]int) error {
	if err := a.list("gather", len(dst), at); err != nil {
		return err
	}
	return a.w.Gather(dst, func(i int) (int, int) { return a.owner(at[i]) })
}

// Scatter puts src[i] to the element at index at[i] for all i, whoever owns them. It completes like a Put. Where an element is named twice, one of its values
// stays. (Global Arrays: NGA_Scatter.)
func (a *Array[T]) Scatter(src []T, at [][]int) error {
	if err := a.list("scatter", len(src), at); err != nil {
		return err
	}
	return a.w.Scatter(src, func(i int) (int, int) { return a.owner(at[i]) })
}

// ScatterAccumulate combines src[i] into the element at index at[i] for all i, whoever owns them, each atomically and in any order. It completes like an
// Accumulate. (Global Arrays: NGA_Scatter_acc.)
func ScatterAccumulate[T pgsync.Number](a *Array[T], at [][]int, src []T, o pgsync.Op) error {
	if err := a.list("scatter-accumulate", len(src), at); err != nil {
		return err
	}
	return window.ScatterAccumulate(a.w, func(i int) (int, int) { return a.owner(at[i]) }, src, o)
}

// list verifies a list of indices before anything moves.
func (l *layout) list(op string, values int, at [][]int) error {
	if values != len(at) {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: %d values for %d elements", pgas.ErrRange, values, len(at)))
	}
	for _, i := range at {
		if err := l.check(i); err != nil {
			return transport.NewOpError(op, -1, err)
		}
	}
	return nil
}
