package pgas

import (
	"context"
	"fmt"

	"gopgas/window"
)

// Ptr is a global pointer: an element of a symmetric allocation on some member of its team. It is a small value that can
// be copied, compared, and moved to other members and elements; the zero Ptr points nowhere.
type Ptr[T any] struct {
	w      *window.Window[T]
	member int
	disp   int
}

// Alloc allocates n zeroed elements on every member of t, in the team's symmetric heap, and returns a pointer to the
// first of this rank's. Collective. The heap grows as needed.
func Alloc[T any](ctx context.Context, t *Team, n int) (Ptr[T], error) {
	w, err := window.Allocate[T](ctx, t, n)
	if err != nil {
		return Ptr[T]{}, err
	}
	return Ptr[T]{w: w, member: t.Rank()}, nil
}

// Free gives the allocation that p points into back, on all members. Collective; all pointers into it end.
func (p Ptr[T]) Free(ctx context.Context) error { return p.w.Free(ctx) }

// IsNil reports whether p points nowhere.
func (p Ptr[T]) IsNil() bool { return p.w == nil }

// On returns the pointer to the same element of another member.
func (p Ptr[T]) On(member int) Ptr[T] { return Ptr[T]{p.w, member, p.disp} }

// Add returns the pointer n elements further on the same member. It may point outside; using it there is an error.
func (p Ptr[T]) Add(n int) Ptr[T] { return Ptr[T]{p.w, p.member, p.disp + n} }

// Sub returns how many elements p lies behind q on the same member: q.Add(p.Sub(q)) is p. It panics if they do not point
// into the same part of the same allocation.
func (p Ptr[T]) Sub(q Ptr[T]) int {
	if p.w != q.w || p.member != q.member {
		// bug: a difference of pointers that have none
		panic(fmt.Sprintf("pgas: difference of pointers to members %d and %d, or into different allocations", p.member, q.member))
	}
	return p.disp - q.disp
}

// Member returns the member that the element lies on.
func (p Ptr[T]) Member() int { return p.member }

// Disp returns the element's place in the member's part.
func (p Ptr[T]) Disp() int { return p.disp }

// Window returns the window that p points into.
func (p Ptr[T]) Window() *window.Window[T] { return p.w }

// Load returns the element.
func (p Ptr[T]) Load() (T, error) {
	var one [1]T
	err := p.w.Get(p.member, p.disp, one[:])
	return one[0], err
}

// Store puts the element; it is visible after a Flush of the window.
func (p Ptr[T]) Store(v T) error {
	one := [1]T{v}
	return p.w.Put(p.member, p.disp, one[:])
}

// Get copies the elements from p on to dst.
func (p Ptr[T]) Get(dst []T) error { return p.w.Get(p.member, p.disp, dst) }

// Put copies src to the elements from p on; they are visible after a Flush of the window.
func (p Ptr[T]) Put(src []T) error { return p.w.Put(p.member, p.disp, src) }

// Local returns the elements from p on as ordinary memory, if p points to this rank's part.
func (p Ptr[T]) Local() ([]T, bool) {
	if p.w == nil || p.member != p.w.Team().Rank() || p.disp < 0 || p.disp > len(p.w.Local()) {
		return nil, false
	}
	return p.w.Local()[p.disp:], true
}
