package pgas

import (
	"context"
	"fmt"
	"iter"

	"gopgas/transport"
	"gopgas/window"
)

// Matrix is a two-dimensional array that is spread over a team in blocks, one for each member. Every member sees all of
// it by global row and column. T holds no pointers.
//
// Any goroutine may call any method at any time, except the collective ones and Free. Put, Get, At and Set move elements
// at once and take no part of their owner; Fence is what orders them between ranks.
type Matrix[T any] struct {
	w *window.Window[T]
	blocks
}

// NewMatrix returns a matrix of rows by cols zeroed elements over t. Collective; rows, cols and g are the same everywhere.
// Every member's part has room for the largest block and its ghost cells.
func NewMatrix[T any](ctx context.Context, t *Team, rows, cols int, g Grid) (*Matrix[T], error) {
	const op = "new matrix"
	g, err := g.fit(rows, cols, t.Size())
	if err := t.Alike(ctx, op, fmt.Sprintf("a matrix of %d by %d, %+v", rows, cols, g), err); err != nil {
		return nil, err
	}
	m := &Matrix[T]{blocks: newBlocks(rows, cols, g)}
	m.w, err = window.Allocate[T](ctx, t, (m.rd.most()+2*g.Ghost)*m.stride)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Free gives the matrix's memory back. Collective.
func (m *Matrix[T]) Free(ctx context.Context) error { return m.w.Free(ctx) }

// Rows returns the number of rows, Cols that of columns.
func (m *Matrix[T]) Rows() int { return m.rd.n }

// Cols returns the number of columns.
func (m *Matrix[T]) Cols() int { return m.cd.n }

// Grid returns how the matrix lies on its team, with what was left to choose.
func (m *Matrix[T]) Grid() Grid { return m.g }

// Team returns the matrix's team.
func (m *Matrix[T]) Team() *Team { return m.w.Team() }

// Window returns the window under the matrix; Owner tells where in it an element lies.
func (m *Matrix[T]) Window() *window.Window[T] { return m.w }

// Flush returns when all earlier puts of this rank are visible at their owners.
func (m *Matrix[T]) Flush() error { return m.w.FlushAll() }

// Fence returns when everything that any member has done to the matrix before is visible to all. Collective. It leaves
// ghost cells as they are.
func (m *Matrix[T]) Fence(ctx context.Context) error { return m.w.Fence(ctx) }

// Owner returns the member that owns element (i, j), and the element's place in the member's part. It panics if there is
// no such element.
func (m *Matrix[T]) Owner(i, j int) (member, disp int) {
	if uint(i) >= uint(m.rd.n) || uint(j) >= uint(m.cd.n) {
		// bug: an index out of range, as with a slice
		panic(fmt.Sprintf("pgas: element (%d, %d) of a matrix of %d by %d", i, j, m.rd.n, m.cd.n))
	}
	r, x := m.rd.owner(i)
	c, y := m.cd.owner(j)
	return r*m.g.Cols + c, m.place(x, y)
}

// Block returns the elements that a member owns; the area may be empty. It panics if there is no such member.
func (m *Matrix[T]) Block(member int) Area {
	existing(member, m.Team().Size())
	return m.block(member)
}

// mine is the block of this rank.
func (m *Matrix[T]) mine() Area { return m.block(m.Team().Rank()) }

// block is the block of a member, which exists.
func (b *blocks) block(member int) Area {
	r, c := member/b.g.Cols, member%b.g.Cols
	return Area{Row: b.rd.first(r), Col: b.cd.first(c), Rows: b.rd.count(r), Cols: b.cd.count(c)}
}

// Row returns row i of this rank's block, counted from the block's first one: ordinary memory. With ghost cells it begins
// and ends with those, so that column j of the block is element Grid().Ghost+j, and i goes from -Ghost to Ghost behind
// the last row. It panics outside.
func (m *Matrix[T]) Row(i int) []T {
	g, b := m.g.Ghost, m.mine()
	if i < -g || i >= b.Rows+g {
		// bug: an index out of range, as with a slice
		panic(fmt.Sprintf("pgas: row %d of a block of %d rows and %d ghost rows on each side", i, b.Rows, g))
	}
	n := b.Cols + 2*g
	at := (i + g) * m.stride
	return m.w.Local()[at : at+n : at+n]
}

// ownRows is how many rows of its block this rank has: none any more after Free.
func (m *Matrix[T]) ownRows() int {
	if len(m.w.Local()) == 0 {
		return 0
	}
	return m.mine().Rows
}

// Mine iterates over the elements that this rank owns, with their global row and column; the pointers allow to change
// them in place. There are none after Free.
func (m *Matrix[T]) Mine() iter.Seq2[[2]int, *T] {
	return func(yield func([2]int, *T) bool) {
		b := m.mine()
		for i := range m.ownRows() {
			row := m.Row(i)[m.g.Ghost:]
			for j := range b.Cols {
				if !yield([2]int{b.Row + i, b.Col + j}, &row[j]) {
					return
				}
			}
		}
	}
}

// Owned iterates over this rank's elements in pieces of ordinary memory, a row after the other, none after Free. Reduce combines them all.
func (m *Matrix[T]) Owned() iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		b := m.mine()
		for i := range m.ownRows() {
			if !yield(m.Row(i)[m.g.Ghost : m.g.Ghost+b.Cols]) {
				return
			}
		}
	}
}

// At returns element (i, j).
func (m *Matrix[T]) At(i, j int) (T, error) {
	var one [1]T
	err := m.Get(Area{Row: i, Col: j, Rows: 1, Cols: 1}, one[:])
	return one[0], err
}

// Set makes element (i, j) v. It is a Put of one element.
func (m *Matrix[T]) Set(i, j int, v T) error {
	one := [1]T{v}
	return m.Put(Area{Row: i, Col: j, Rows: 1, Cols: 1}, one[:])
}

// Ptr returns the global pointer to element (i, j). It panics if there is no such element.
func (m *Matrix[T]) Ptr(i, j int) Ptr[T] {
	member, disp := m.Owner(i, j)
	return Ptr[T]{m.w, member, disp}
}

// Get gets the elements of an area, whoever owns them, to dst, row after row, and returns when they are there.
func (m *Matrix[T]) Get(a Area, dst []T) error {
	a, err := m.area("get", a, len(dst))
	if err != nil {
		return err
	}
	return m.get(a, dst, 0, a.Cols)
}

// Put puts src, row after row, to the elements of an area, whoever owns them. It completes like a Put of a window.
func (m *Matrix[T]) Put(a Area, src []T) error {
	a, err := m.area("put", a, len(src))
	if err != nil {
		return err
	}
	return m.put(a, src, 0, a.Cols)
}

// GetNB begins a Get. dst belongs to the library until the handles are done, all of them or one after the other; where all
// memory is mapped that is so at once. It allocates the handles, and may wait for room on the NIC.
func (m *Matrix[T]) GetNB(a Area, dst []T) (window.Handles, error) {
	a, err := m.area("get", a, len(dst))
	if err != nil {
		return nil, err
	}
	return begun(m.all(a), dst, m.w.GetSectionsNB)
}

// PutNB begins a Put. src belongs to the library until the handles are done; the elements are visible at their owners after a
// Flush or Fence.
func (m *Matrix[T]) PutNB(a Area, src []T) (window.Handles, error) {
	a, err := m.area("put", a, len(src))
	if err != nil {
		return nil, err
	}
	return begun(m.all(a), src, m.w.PutSectionsNB)
}

// all are the pieces of an area that was checked.
func (m *Matrix[T]) all(a Area) iter.Seq[window.Piece] {
	return func(yield func(window.Piece) bool) {
		var one [1]window.Piece
		for c := m.cut(a, 0, a.Cols); c.fill(one[:]) > 0; {
			if !yield(one[0]) {
				return
			}
		}
	}
}

// together is how many pieces, one for each owner, are transferred at once.
const together = 16

// get gets an area that was checked to dst, where it begins at place near, and its rows begin stride elements apart.
func (m *Matrix[T]) get(a Area, dst []T, near, stride int) error {
	var pieces [together]window.Piece
	for c := m.cut(a, near, stride); ; {
		n := c.fill(pieces[:])
		if n == 0 {
			return nil
		}
		if err := m.w.GetSections(dst, pieces[:n]); err != nil {
			return err
		}
	}
}

// put is the opposite of get.
func (m *Matrix[T]) put(a Area, src []T, near, stride int) error {
	var pieces [together]window.Piece
	for c := m.cut(a, near, stride); ; {
		n := c.fill(pieces[:])
		if n == 0 {
			return nil
		}
		if err := m.w.PutSections(src, pieces[:n]); err != nil {
			return err
		}
	}
}

// area verifies an area and the length of the slice for its elements. Of those that lie anywhere the window tells whether it was freed.
func (m *Matrix[T]) area(op string, a Area, n int) (Area, error) {
	a, err := a.within(m.rd.n, m.cd.n)
	if err == nil && (a.Cols != 0 && n/a.Cols != a.Rows || n != a.Rows*a.Cols) {
		err = fmt.Errorf("%w: a slice of %d elements for %d by %d", ErrRange, n, a.Rows, a.Cols)
	}
	if err == nil && n == 0 {
		return a, there(op, m.w)
	}
	return a, transport.NewOpError(op, -1, err)
}
