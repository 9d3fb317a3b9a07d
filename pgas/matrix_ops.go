package pgas

import (
	"context"
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/sched"
	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// AccumulateArea combines src, row after row, into the elements of an area, whoever owns them, each atomically, the whole not. It is
// ordered and flushed like a Put, and returns when src may be reused; op is any that window.Accumulate takes. Rows of an owner's part
// that are long travel as one each, short ones and those with steps together, as those of ScatterAccumulate. (Global Arrays: NGA_Acc,
// NGA_Strided_acc, which scale src by a factor; that is the caller's here.)
func AccumulateArea[T pgsync.Number](m *Matrix[T], a Area, src []T, op pgsync.Op) error {
	a, err := m.area("accumulate", a, len(src))
	if err != nil || len(src) == 0 {
		return err
	}
	if a.ColStep > 1 || min(a.Cols, m.cd.most())*mem.SizeOf[T]() < shortRun {
		return window.ScatterAccumulate(m.w, func(i int) (int, int) { return m.Owner(a.Row+i/a.Cols*a.RowStep, a.Col+i%a.Cols*a.ColStep) }, src, op)
	}
	for i := range a.Rows {
		r, x := m.rd.owner(a.Row + i*a.RowStep)
		row := src[i*a.Cols : (i+1)*a.Cols]
		for j := 0; j < a.Cols; {
			c, y := m.cd.owner(a.Col + j)
			n := min(m.cd.run(a.Col+j), a.Cols-j)
			if err := window.Accumulate(m.w, r*m.g.Cols+c, m.place(x, y), row[j:j+n], op); err != nil {
				return err
			}
			j += n
		}
	}
	return nil
}

// Gather gets the element in row at[i][0] and column at[i][1] to dst[i] for all i, whoever owns them, and returns when all are there.
// Through a NIC they come in chains of many, over all owners at once. (Global Arrays: NGA_Gather.)
func (m *Matrix[T]) Gather(dst []T, at [][2]int) error {
	if err := m.list("gather", len(dst), at); err != nil {
		return err
	}
	return m.w.Gather(dst, func(i int) (int, int) { return m.Owner(at[i][0], at[i][1]) })
}

// Scatter puts src[i] to the element in row at[i][0] and column at[i][1] for all i, whoever owns them. It completes like a Put. Where an
// element is named twice, one of its values stays. (Global Arrays: NGA_Scatter.)
func (m *Matrix[T]) Scatter(src []T, at [][2]int) error {
	if err := m.list("scatter", len(src), at); err != nil {
		return err
	}
	return m.w.Scatter(src, func(i int) (int, int) { return m.Owner(at[i][0], at[i][1]) })
}

// list verifies a list of rows and columns before anything moves.
func (m *Matrix[T]) list(op string, values int, at [][2]int) error {
	if values != len(at) {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: %d values for %d elements", ErrRange, values, len(at)))
	}
	for _, x := range at {
		if uint(x[0]) >= uint(m.rd.n) || uint(x[1]) >= uint(m.cd.n) {
			return transport.NewOpError(op, -1, fmt.Errorf("%w: element (%d, %d) of a matrix of %d by %d", ErrRange, x[0], x[1], m.rd.n, m.cd.n))
		}
	}
	return nil
}

// Combine sets every element of m to f of the elements of x and y in the same place. x and y have as many rows and columns on the
// same team; their grids may differ, and both may be m itself. Ghost cells stay as they are. Collective; it is a Fence of all three
// before, and of m after. (Global Arrays: GA_Add, GA_Elem_multiply and their like.)
func (m *Matrix[T]) Combine(ctx context.Context, x, y *Matrix[T], f func(x, y T) T) error {
	const op = "combine"
	for _, o := range []*Matrix[T]{x, y} {
		if err := m.alike(op, o, o.rd.n, o.cd.n); err != nil {
			return m.Team().Refuse(ctx, op, err)
		}
	}
	t := m.Team()
	return t.Abandon(op, t.Guard(op, func() error { return m.combine(ctx, x, y, f) }))
}

func (m *Matrix[T]) combine(ctx context.Context, x, y *Matrix[T], f func(x, y T) T) error {
	for _, o := range []*Matrix[T]{x, y, m} {
		if err := o.Fence(ctx); err != nil {
			return err
		}
	}
	b := m.mine()
	if b.Rows > 0 && b.Cols > 0 {
		step := max(1, wholePiece/b.Cols)
		var bufs [2][]T
		for lo := 0; lo < b.Rows; lo += step {
			if err := sched.Ended(ctx); err != nil {
				return err
			}
			n := min(step, b.Rows-lo)
			from, err := x.rowsOf(m, b, lo, n, &bufs[0])
			if err != nil {
				return err
			}
			with, err := y.rowsOf(m, b, lo, n, &bufs[1])
			if err != nil {
				return err
			}
			for i := range n {
				to, p, q := m.inner(lo+i), from(i), with(i)
				for j := range to {
					to[j] = f(p[j], q[j])
				}
			}
		}
	}
	return m.Fence(ctx)
}

// inner is row i of this rank's block without ghost cells.
func (m *Matrix[T]) inner(i int) []T {
	at := m.place(i, 0)
	return m.w.Local()[at : at+m.mine().Cols]
}

// rowsOf returns the elements that x has in the places of n rows, from lo on, of this rank's block b of m, by row: in x's own memory if it is
// dealt in the same blocks, else in buf.
func (x *Matrix[T]) rowsOf(m *Matrix[T], b Area, lo, n int, buf *[]T) (func(i int) []T, error) {
	if x.g.Rows == m.g.Rows && x.g.Cols == m.g.Cols {
		return func(i int) []T { return x.inner(lo + i) }, nil
	}
	if cap(*buf) < n*b.Cols {
		*buf = make([]T, n*b.Cols)
	}
	got := (*buf)[:n*b.Cols]
	a := Area{Row: b.Row + lo, Col: b.Col, Rows: n, Cols: b.Cols, RowStep: 1, ColStep: 1}
	return func(i int) []T { return got[i*b.Cols : (i+1)*b.Cols] }, x.get(a, got, 0, b.Cols)
}

// Resize gives m another size or grid, or both; the elements that both sizes have are kept, the new ones are 0, and so are ghost cells. Pointers
// into the matrix, its Window and Row end. Collective; it is a Fence. On an error m is as it was, but for one that comes when all members have the new elements and the
// old memory is given back, as where ctx ends then: Rows and Cols say which it is.
func (m *Matrix[T]) Resize(ctx context.Context, rows, cols int, g Grid) error {
	const op = "resize"
	if err := there(op, m.w); err != nil {
		return m.Team().Refuse(ctx, op, err)
	}
	b, err := NewMatrix[T](ctx, m.Team(), rows, cols, g)
	if err != nil {
		return err
	}
	if err := b.keepOf(ctx, m); err != nil {
		return m.Team().AbandonMade(ctx, op, err, b.Free)
	}
	old := m.w
	m.w, m.blocks = b.w, b.blocks
	return m.Team().AbandonEnd(ctx, op, old.Free(ctx))
}

// keepOf copies the elements that old has in the places of this rank's, which are new, between fences.
func (m *Matrix[T]) keepOf(ctx context.Context, old *Matrix[T]) error {
	if err := old.Fence(ctx); err != nil {
		return err
	}
	keep := m.mine()
	keep.Rows, keep.Cols = min(keep.Rows, old.rd.n-keep.Row), min(keep.Cols, old.cd.n-keep.Col)
	if err := m.fetch(ctx, old, keep); err != nil {
		return err
	}
	return m.Fence(ctx)
}
