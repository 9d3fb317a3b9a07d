package pgas

import (
	"context"
	"fmt"

	"gopgas/internal/sched"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// UpdateGhosts renews the ghost cells: each member gets its frame from those who own the elements, corners included,
// from as many blocks as the frame reaches across. Ghost cells outside a matrix that is not periodic stay as they are.
// Collective; it is a Fence before, and waits until all have their frames.
func (m *Matrix[T]) UpdateGhosts(ctx context.Context) error {
	return m.Team().Abandon("update-ghosts", m.updateGhosts(ctx))
}

func (m *Matrix[T]) updateGhosts(ctx context.Context) error {
	if err := m.Fence(ctx); err != nil {
		return err
	}
	b := m.mine()
	if b.Rows > 0 && b.Cols > 0 {
		var pieces []window.Piece // of the whole frame, so that all are under way together
		for _, strip := range frame(b.Rows, b.Cols, m.g.Ghost) {
			pieces = m.strip(pieces, b, strip)
		}
		if err := m.w.GetSections(m.w.Local(), pieces); err != nil {
			return err
		}
	}
	return m.Team().Barrier(ctx) // from here on the elements may change
}

// strip adds the pieces of what a strip beside block b shows of the matrix.
func (m *Matrix[T]) strip(pieces []window.Piece, b, strip Area) []window.Piece {
	for i, rows := range wrap(b.Row+strip.Row, strip.Rows, m.rd.n, m.g.PeriodicRows) {
		for j, cols := range wrap(b.Col+strip.Col, strip.Cols, m.cd.n, m.g.PeriodicCols) {
			a := Area{Row: rows[0], Col: cols[0], Rows: rows[1] - rows[0], Cols: cols[1] - cols[0], RowStep: 1, ColStep: 1}
			c := m.cut(a, m.place(strip.Row+i, strip.Col+j), m.stride)
			for n := 1; n > 0; {
				var some [together]window.Piece
				n = c.fill(some[:])
				pieces = append(pieces, some[:n]...)
			}
		}
	}
	return pieces
}

// Fill sets every element to v. Collective; it is a Fence before and after.
func (m *Matrix[T]) Fill(ctx context.Context, v T) error {
	return m.Apply(ctx, func(int, int, T) T { return v })
}

// Apply sets every element to f of its row, its column and its value; each member does so for its own, in any order.
// Collective; it is a Fence before and after.
func (m *Matrix[T]) Apply(ctx context.Context, f func(i, j int, v T) T) error {
	const op = "apply"
	t := m.Team()
	return t.Abandon(op, t.Guard(op, func() error { return m.apply(ctx, f) }))
}

func (m *Matrix[T]) apply(ctx context.Context, f func(i, j int, v T) T) error {
	if err := m.Fence(ctx); err != nil {
		return err
	}
	look := lookout{ctx: ctx}
	for at, x := range m.Mine() {
		if err := look.next(1); err != nil {
			return err
		}
		*x = f(at[0], at[1], *x)
	}
	return m.Fence(ctx)
}

// CopyFrom copies the elements of src, which has as many rows and columns on the same team, with any grid. Ghost cells
// are not copied. Collective; it is a Fence of both before and after.
func (m *Matrix[T]) CopyFrom(ctx context.Context, src *Matrix[T]) error {
	return m.from(ctx, "copy", src, src.rd.n, src.cd.n, func() error {
		return m.fetch(ctx, src, m.mine())
	})
}

// copyPiece is how many elements are copied before ctx is looked at again, about.
const copyPiece = 1 << 20

// fetch gets what src has in area b, which begins where this rank's block does and is no larger, some rows at a time.
func (m *Matrix[T]) fetch(ctx context.Context, src *Matrix[T], b Area) error {
	if b.Rows <= 0 || b.Cols <= 0 {
		return nil
	}
	step := max(1, copyPiece/b.Cols)
	for lo := 0; lo < b.Rows; lo += step {
		if err := sched.Ended(ctx); err != nil {
			return err
		}
		some := Area{Row: b.Row + lo, Col: b.Col, Rows: min(step, b.Rows-lo), Cols: b.Cols, RowStep: 1, ColStep: 1}
		if err := src.get(some, m.w.Local(), m.place(lo, 0), m.stride); err != nil {
			return err
		}
	}
	return nil
}

// transposePiece is how many elements of another matrix are held at once, about.
const transposePiece = 1 << 16

// Transpose makes m the transpose of src, which has as many rows as m has columns, and the other way round, on the same
// team, with any grid. Collective; it is a Fence of both before and after.
func (m *Matrix[T]) Transpose(ctx context.Context, src *Matrix[T]) error {
	return m.from(ctx, "transpose", src, src.cd.n, src.rd.n, func() error {
		b := m.mine()
		if b.Rows == 0 || b.Cols == 0 {
			return nil
		}
		step := max(1, transposePiece/b.Rows) // columns of m, rows of src
		buf := make([]T, min(step, b.Cols)*b.Rows)
		for lo := 0; lo < b.Cols; lo += step {
			if err := sched.Ended(ctx); err != nil {
				return err
			}
			n := min(step, b.Cols-lo)
			from := Area{Row: b.Col + lo, Col: b.Row, Rows: n, Cols: b.Rows, RowStep: 1, ColStep: 1}
			if err := src.get(from, buf, 0, b.Rows); err != nil {
				return err
			}
			for i := range b.Rows {
				row := m.Row(i)[m.g.Ghost+lo:]
				for j := range n {
					row[j] = buf[j*b.Rows+i]
				}
			}
		}
		return nil
	})
}

// from runs f, which makes this rank's block of m from src, between fences. m has to have rows by cols elements.
func (m *Matrix[T]) from(ctx context.Context, op string, src *Matrix[T], rows, cols int, f func() error) error {
	bad := m.alike(op, src, rows, cols)
	if src == m {
		bad = transport.NewOpError(op, -1, fmt.Errorf("%w: a matrix from itself", pgsync.ErrMismatch))
	}
	if bad != nil {
		return m.Team().Refuse(ctx, op, bad)
	}
	err := src.Fence(ctx)
	if err == nil {
		err = m.Fence(ctx)
	}
	if err == nil {
		err = f()
	}
	if err == nil {
		err = m.Fence(ctx)
	}
	return m.Team().Abandon(op, err)
}

// alike verifies that src, of which rows by cols elements are taken, is on m's team, and that those are as many as m has.
func (m *Matrix[T]) alike(op string, src *Matrix[T], rows, cols int) error {
	if src.Team() != m.Team() || rows != m.rd.n || cols != m.cd.n {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: a matrix of %d by %d elements on a team of %d for one of %d by %d, needed the same team, "+
			"and elements for each place", pgsync.ErrMismatch, src.rd.n, src.cd.n, src.Team().Size(), m.rd.n, m.cd.n))
	}
	return nil
}
