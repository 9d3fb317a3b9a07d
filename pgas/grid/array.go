package grid

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gopgas/pgas"
	"gopgas/transport"
	"gopgas/window"
)

// Array is an array of up to seven dimensions that is spread over a team in blocks, one for each member. Every member sees all of it by global
// index: a number for each dimension, the last one's elements next to each other. T holds no pointers.
//
// Any goroutine may call any method at any time, except the collective ones and Free. Put, Get, At, Set and the atomics move elements at once and take
// no part of their owner; Fence is what orders them between ranks.
type Array[T any] struct {
	layout
	w     *window.Window[T]
	mine  dims           // this rank's coords
	by    dims           // how far apart neighbours lie in its part
	all   int            // how many elements that has
	frame []window.Piece // what UpdateGhosts gets; found the first time
}

// New returns an array of zeroed elements over t, with so many in each dimension. Collective; shape and c are the same everywhere. All members get an
// error if one does, at once.
func New[T any](ctx context.Context, t *pgas.Team, shape []int, c Config) (*Array[T], error) {
	c, err := c.fit(shape, t.Size())
	if err := t.Alike(ctx, "new grid", c.describe(shape), err); err != nil {
		return nil, err
	}
	a := &Array[T]{layout: newLayout(shape, c)}
	a.mine = a.coords(t.Rank())
	a.by, a.all = a.strides(&a.mine)
	if a.w, err = window.Allocate[T](ctx, t, a.room()); err != nil {
		return nil, err
	}
	return a, nil
}

// Free gives the array's memory back. Collective.
func (a *Array[T]) Free(ctx context.Context) error { return a.w.Free(ctx) }

// String says how large the array is, and how it is cut.
func (a *Array[T]) String() string {
	s := fmt.Sprintf("array of %v %v, in %v blocks", a.Shape(), typeName((*T)(nil)), a.Parts())
	if a.ghost != (dims{}) {
		s += fmt.Sprintf(" with ghost cells of width %v", a.ghost[:a.n])
		if a.faces {
			s += " and no corners"
		}
	}
	return s
}

// typeName is the name of the type that of points to.
func typeName(of any) string { return reflect.TypeOf(of).Elem().String() }

// elemBytes is the size of what of points to.
func elemBytes(of any) int { return int(reflect.TypeOf(of).Elem().Size()) }

// Shape returns how many elements there are in each dimension. It allocates, as the other calls do that return slices of numbers.
func (a *Array[T]) Shape() []int { return slices.Clone(a.shape[:a.n]) }

// Parts returns into how many blocks each dimension is cut.
func (a *Array[T]) Parts() []int { return slices.Clone(a.parts[:a.n]) }

// Whole returns the box of all elements.
func (a *Array[T]) Whole() Box { return Box{Lo: make([]int, a.n), Hi: a.Shape()} }

// Block returns the elements that a member owns; there may be none. It panics if there is no such member.
func (a *Array[T]) Block(member int) Box {
	if size := a.Team().Size(); uint(member) >= uint(size) {
		// bug: an index out of range, as with a slice
		panic(fmt.Errorf("%w: member %d of a team of %d", pgas.ErrRange, member, size))
	}
	b := a.Whole()
	for d, k := range a.coords(member) {
		if d < a.n {
			b.Lo[d], b.Hi[d] = a.starts[d][k], a.starts[d][k+1]
		}
	}
	return b
}

// Team returns the array's team.
func (a *Array[T]) Team() *pgas.Team { return a.w.Team() }

// Window returns the window under the array; Owner tells where in it an element lies. With both, all operations of package window are to be had on elements.
func (a *Array[T]) Window() *window.Window[T] { return a.w }

// Owner returns the member that owns an element, and the element's place in the member's part. It panics if there is no such element.
func (a *Array[T]) Owner(at ...int) (member, disp int) {
	if err := a.check(at); err != nil {
		// bug: an index out of range, as with a slice
		panic(err)
	}
	return a.owner(at)
}

// At returns the element at an index.
func (a *Array[T]) At(at ...int) (T, error) {
	var one [1]T
	if err := a.check(at); err != nil {
		return one[0], transport.NewOpError("at", -1, err)
	}
	member, disp := a.owner(at)
	err := a.w.Get(member, disp, one[:])
	return one[0], err
}

// Set makes the element at an index v. It is a Put of one element.
func (a *Array[T]) Set(v T, at ...int) error {
	if err := a.check(at); err != nil {
		return transport.NewOpError("set", -1, err)
	}
	member, disp := a.owner(at)
	one := [1]T{v}
	return a.w.Put(member, disp, one[:])
}

// Get gets the elements of a box, whoever owns them, to dst, which has room for just those, the last dimension quickest. It returns when they are there.
func (a *Array[T]) Get(b Box, dst []T) error { return a.get("get", b, dst, false) }

// Put puts src, as long as the box has elements, the last dimension quickest, to a box, whoever owns it. It completes like a Put of a window: src may
// be reused on return, and the elements are visible after a Flush or Fence.
func (a *Array[T]) Put(b Box, src []T) error { return a.put("put", b, src, false) }

// GetPeriodic is Get from an array that goes on for ever in all directions: index i of a dimension is that modulo the shape, negative ones too. The
// box may begin anywhere, and be larger than the array. It does not depend on Config.Periodic. (Global Arrays: NGA_Periodic_get.)
func (a *Array[T]) GetPeriodic(b Box, dst []T) error { return a.get("get-periodic", b, dst, true) }

// PutPeriodic is Put to the same. Where a box is larger than the array, an element has several values, of which one stays.
func (a *Array[T]) PutPeriodic(b Box, src []T) error { return a.put("put-periodic", b, src, true) }

// GetNB begins a Get. dst belongs to the library until the handles are done, all of them or one after the other; where all memory is mapped that is so
// at once. It allocates, and may wait for room on the NIC.
func (a *Array[T]) GetNB(b Box, dst []T) (window.Handles, error) {
	pieces, err := a.pieces("get", b, len(dst))
	if err != nil {
		return nil, err
	}
	return a.w.GetSectionsNB(dst, pieces)
}

// PutNB begins a Put. src belongs to the library until the handles are done; the elements are visible at their owners after a Flush or Fence.
func (a *Array[T]) PutNB(b Box, src []T) (window.Handles, error) {
	pieces, err := a.pieces("put", b, len(src))
	if err != nil {
		return nil, err
	}
	return a.w.PutSectionsNB(src, pieces)
}

// few sections are kept without an allocation; of more, many are transferred at once.
const few, many = 16, 4096

func (a *Array[T]) get(op string, b Box, dst []T, around bool) error {
	ls, err := a.lines(b, len(dst), around)
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	return a.move(false, &ls, dst, 0, ls.packed(a.n))
}

func (a *Array[T]) put(op string, b Box, src []T, around bool) error {
	ls, err := a.lines(b, len(src), around)
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	return a.move(true, &ls, src, 0, ls.packed(a.n))
}

// move puts elements from a slice, or gets them to it, from place from on, where neighbours are near apart.
func (a *Array[T]) move(put bool, ls *lines, slice []T, from int, near dims) (err error) {
	var some [few]window.Piece
	pieces := some[:]
	w := a.walk(ls, from, near)
	n := w.fill(pieces)
	if w.more {
		pieces = append(make([]window.Piece, 0, many), some[:]...)[:many]
		n += w.fill(pieces[n:])
	}
	for { // of no elements, too: the window may have been freed
		if put {
			err = a.w.PutSections(slice, pieces[:n])
		} else {
			err = a.w.GetSections(slice, pieces[:n])
		}
		if n = w.fill(pieces); n == 0 || err != nil {
			return err
		}
	}
}

// pieces returns all sections of a box.
func (a *Array[T]) pieces(op string, b Box, near int) ([]window.Piece, error) {
	ls, err := a.lines(b, near, false)
	if err != nil {
		return nil, transport.NewOpError(op, -1, err)
	}
	return a.sections(nil, &ls, 0, ls.packed(a.n)), nil
}

// sections adds the sections of some elements.
func (a *Array[T]) sections(to []window.Piece, ls *lines, from int, near dims) []window.Piece {
	for w := a.walk(ls, from, near); w.more; w.next() {
		to = append(to, w.piece)
	}
	return to
}

// Flush returns when all earlier puts of this rank are visible at their owners.
func (a *Array[T]) Flush() error { return a.w.FlushAll() }

// Fence returns when everything that any member has done to the array before is visible to all. Collective. It leaves ghost cells as they are.
func (a *Array[T]) Fence(ctx context.Context) error { return a.w.Fence(ctx) }
