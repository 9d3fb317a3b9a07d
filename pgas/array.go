package pgas

import (
	"context"
	"fmt"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/transport"
	"gopgas/window"
)

// ErrRange: elements outside an array or a window.
var ErrRange = window.ErrRange

// Array is a one-dimensional array spread over a team. Every member sees all of it by global index. T holds no pointers.
//
// Any goroutine may call any method at any time, except the collective ones and Free. Put, Get, At, Set and the atomics move elements at once
// and take no part of their owner; Fence is what orders them between ranks.
type Array[T any] struct {
	w     *window.Window[T]
	d     dist
	spare atomic.Pointer[[]T] // a buffer for accumulates to come
}

// NewArray returns an array of n zeroed elements over t. Collective; n and the layout are the same everywhere.
func NewArray[T any](ctx context.Context, t *Team, n int, l Layout) (*Array[T], error) {
	refusal := l.check(n, t.Size())
	if err := t.Alike(ctx, "new array", fmt.Sprintf("an array of %d elements, %s", n, l), refusal); err != nil {
		return nil, err
	}
	d := newDist(l, n, t.Size())
	w, err := window.Allocate[T](ctx, t, d.most())
	if err != nil {
		return nil, err
	}
	return &Array[T]{w: w, d: d}, nil
}

// Free gives the array's memory back. Collective.
func (a *Array[T]) Free(ctx context.Context) error { return a.w.Free(ctx) }

// Len returns the number of elements of the whole array.
func (a *Array[T]) Len() int { return a.d.n }

// Team returns the array's team.
func (a *Array[T]) Team() *Team { return a.w.Team() }

// Window returns the window under the array: its targets are the team's members, its displacements are places in
// their parts.
func (a *Array[T]) Window() *window.Window[T] { return a.w }

// Owner returns the member that owns element i, and the element's place in the member's part. It panics if there is no
// such element.
func (a *Array[T]) Owner(i int) (member, disp int) {
	if uint(i) >= uint(a.d.n) {
		// bug: an index out of range, as with a slice
		panic(a.d.check(i, 1))
	}
	return a.d.owner(i)
}

// Range returns the elements [lo, hi) that a member owns in a layout that gives each member one range. In the others lo is
// its first element and hi is the one behind its last; in a cyclic layout every Team().Size()-th between them is its. It panics if there
// is no such member.
func (a *Array[T]) Range(member int) (lo, hi int) {
	existing(member, a.d.p)
	lo = a.d.first(member)
	if c := a.d.count(member); c > 0 {
		return lo, a.d.index(member, c-1) + 1
	}
	return lo, lo
}

// Index returns the global index of the element at place disp of a member's part: the inverse of Owner. It panics if there is no such
// element.
func (a *Array[T]) Index(member, disp int) int {
	existing(member, a.d.p)
	if count := a.d.count(member); uint(disp) >= uint(count) {
		// bug: an index out of range, as with a slice
		panic(fmt.Errorf("%w: place %d of the part of member %d, which has %d elements", ErrRange, disp, member, count))
	}
	return a.d.index(member, disp)
}

// Local returns this rank's elements, in ascending order of their global indices: ordinary memory. There are none after Free.
func (a *Array[T]) Local() []T {
	part := a.w.Local()
	return part[:min(a.localLen(), len(part))]
}

// elemBytes is the size of an element.
func (a *Array[T]) elemBytes() int { return mem.SizeOf[T]() }

func (a *Array[T]) localLen() int {
	if a.w.Len(a.Team().Rank()) == 0 {
		return 0
	}
	return a.d.count(a.Team().Rank())
}

// At returns element i.
func (a *Array[T]) At(i int) (T, error) {
	var one [1]T
	if err := a.d.check(i, 1); err != nil {
		return one[0], transport.NewOpError("at", -1, err)
	}
	member, disp := a.d.owner(i)
	err := a.w.Get(member, disp, one[:])
	return one[0], err
}

// Set makes element i v. It is a Put of one element: visible after a Flush or Fence.
func (a *Array[T]) Set(i int, v T) error {
	if err := a.d.check(i, 1); err != nil {
		return transport.NewOpError("set", -1, err)
	}
	member, disp := a.d.owner(i)
	one := [1]T{v}
	return a.w.Put(member, disp, one[:])
}

// check verifies a range of elements. Of those that lie anywhere the window tells whether it was freed.
func (a *Array[T]) check(op string, lo, n int) error {
	if err := a.d.check(lo, n); err != nil || n > 0 {
		return transport.NewOpError(op, -1, err)
	}
	return there(op, a.w)
}

// Put copies src to the elements from lo on, whoever owns them. On return src may be reused; the data is visible after
// a Flush or Fence. src may lie in Local: what arrives are its elements as they were before the call, for which those of several owners are copied first.
func (a *Array[T]) Put(lo int, src []T) error {
	if err := a.check("put", lo, len(src)); err != nil {
		return err
	}
	if a.mixes(lo, src) {
		return a.putApart(lo, src)
	}
	return a.put(lo, src)
}

func (a *Array[T]) put(lo int, src []T) error {
	if a.d.dealt() && a.d.p > 1 {
		return a.dealt(true, lo, src)
	}
	for len(src) > 0 {
		member, disp := a.d.owner(lo)
		n := min(a.d.run(lo), len(src))
		if err := a.w.Put(member, disp, src[:n]); err != nil {
			return err
		}
		lo, src = lo+n, src[n:]
	}
	return nil
}

// Get copies the elements from lo on to dst, whoever owns them, and returns when they are there. dst may lie in Local, as the source of Put may.
func (a *Array[T]) Get(lo int, dst []T) error {
	if err := a.check("get", lo, len(dst)); err != nil {
		return err
	}
	if a.mixes(lo, dst) {
		return a.getApart(lo, dst)
	}
	return a.get(lo, dst)
}

func (a *Array[T]) get(lo int, dst []T) error {
	if a.d.dealt() && a.d.p > 1 {
		return a.dealt(false, lo, dst)
	}
	for len(dst) > 0 {
		member, disp := a.d.owner(lo)
		n := min(a.d.run(lo), len(dst))
		if err := a.w.Get(member, disp, dst[:n]); err != nil {
			return err
		}
		lo, dst = lo+n, dst[n:]
	}
	return nil
}

// dealtOnce is how many bytes of a layout that is dealt out are moved at once: as many as a window packs.
const dealtOnce = 1 << 20

// dealt puts, or gets, the elements from lo on of a layout that deals blocks out: what an owner has of them is one piece.
func (a *Array[T]) dealt(put bool, lo int, near []T) error {
	var few [together]window.Piece
	for step := max(1, dealtOnce/a.elemBytes()); len(near) > 0; {
		n := min(step, len(near))
		ps, err := a.d.pieces(lo, n, few[:0]), error(nil)
		if put {
			err = a.w.PutSections(near[:n], ps)
		} else {
			err = a.w.GetSections(near[:n], ps)
		}
		if err != nil {
			return err
		}
		lo, near = lo+n, near[n:]
	}
	return nil
}

// Flush returns when all earlier puts of this rank are visible at their owners.
func (a *Array[T]) Flush() error { return a.w.FlushAll() }

// Fence returns when everything that any member has done to the array before is visible to all. Collective.
func (a *Array[T]) Fence(ctx context.Context) error { return a.w.Fence(ctx) }

// Load returns element i, as it is at one moment between what other atomics do to it: see window.Load. At is a Get, and no atomic.
func Load[T window.Word](a *Array[T], i int) (v T, err error) {
	if err := a.d.check(i, 1); err != nil {
		return v, transport.NewOpError("load", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.Load(a.w, member, disp)
}

// Store sets element i to v atomically, and asks not for the old value. It is visible after a Flush or Fence: see window.Store. Set is a
// Put, and no atomic.
func Store[T window.Word](a *Array[T], i int, v T) error {
	if err := a.d.check(i, 1); err != nil {
		return transport.NewOpError("store", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.Store(a.w, member, disp, v)
}

// FetchAdd adds v to element i atomically and returns the old value.
func FetchAdd[T window.Word](a *Array[T], i int, v T) (T, error) {
	if err := a.d.check(i, 1); err != nil {
		return v, transport.NewOpError("fetch-add", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.FetchAdd(a.w, member, disp, v)
}

// FetchAddNB begins a FetchAdd. *old gets the old value; it belongs to the library until the handle is done, and is not read before.
// Many may be under way at once: see window.FetchAddNB, which has the other operations too.
func FetchAddNB[T window.Word](a *Array[T], i int, v T, old *T) (window.Handle, error) {
	if err := a.d.check(i, 1); err != nil {
		return window.Handle{}, transport.NewOpError("fetch-add", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.FetchAddNB(a.w, member, disp, v, old)
}

// Swap sets element i to v atomically and returns the old value.
func Swap[T window.Word](a *Array[T], i int, v T) (T, error) {
	if err := a.d.check(i, 1); err != nil {
		return v, transport.NewOpError("swap", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.Swap(a.w, member, disp, v)
}

// SwapNB begins a Swap, as FetchAddNB does a FetchAdd.
func SwapNB[T window.Word](a *Array[T], i int, v T, old *T) (window.Handle, error) {
	if err := a.d.check(i, 1); err != nil {
		return window.Handle{}, transport.NewOpError("swap", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.SwapNB(a.w, member, disp, v, old)
}

// CompareSwap sets element i to v if it is old, and returns what it was.
func CompareSwap[T window.Word](a *Array[T], i int, old, v T) (T, error) {
	if err := a.d.check(i, 1); err != nil {
		return v, transport.NewOpError("compare-swap", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.CompareSwap(a.w, member, disp, old, v)
}

// CompareSwapNB begins a CompareSwap of expect and v, as FetchAddNB does a FetchAdd: the swap took place if and only if *old is expect then.
func CompareSwapNB[T window.Word](a *Array[T], i int, expect, v T, old *T) (window.Handle, error) {
	if err := a.d.check(i, 1); err != nil {
		return window.Handle{}, transport.NewOpError("compare-swap", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.CompareSwapNB(a.w, member, disp, expect, v, old)
}

// FetchXor combines element i with v by exclusive or, atomically, and returns the old value.
func FetchXor[T window.Bits](a *Array[T], i int, v T) (T, error) {
	if err := a.d.check(i, 1); err != nil {
		return v, transport.NewOpError("fetch-xor", -1, err)
	}
	member, disp := a.d.owner(i)
	return window.FetchXor(a.w, member, disp, v)
}
