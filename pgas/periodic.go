package pgas

import (
	"fmt"
	"iter"

	pgsync "gopgas/sync"
	"gopgas/transport"
	"gopgas/window"
)

// GetPeriodic is Get from a matrix that goes on for ever in all directions: row i is row i modulo Rows(), and column j column j
// modulo Cols(), negative ones too. The area may begin anywhere, and be larger than the matrix. It does not depend on the Grid's
// PeriodicRows and PeriodicCols, which say what ghost cells show. (Global Arrays: NGA_Periodic_get.)
func (m *Matrix[T]) GetPeriodic(a Area, dst []T) error {
	return m.periodic("get-periodic", a, dst, m.w.GetSections)
}

// PutPeriodic is Put to the same. Where an area is larger than the matrix, an element has several values, of which one stays.
func (m *Matrix[T]) PutPeriodic(a Area, src []T) error {
	return m.periodic("put-periodic", a, src, m.w.PutSections)
}

// AccumulatePeriodic is AccumulateArea into the same. Where an area is larger than the matrix, all values of an element are combined into it. It travels as a
// ScatterAccumulate does. (Global Arrays: NGA_Periodic_acc.)
func AccumulatePeriodic[T pgsync.Number](m *Matrix[T], a Area, src []T, op pgsync.Op) error {
	down, along, err := a.around(m.rd.n, m.cd.n, len(src))
	if err != nil {
		return transport.NewOpError("accumulate-periodic", -1, err)
	}
	return window.ScatterAccumulate(m.w, func(i int) (int, int) {
		return m.Owner(down.wrapped(i/along.n, m.rd.n), along.wrapped(i%along.n, m.cd.n))
	}, src, op)
}

// wrapped is element number k of a line that goes around a dimension of size elements, at most 1<<31.
func (l line) wrapped(k, size int) int { return ((l.lo%size+k%size*(l.step%size))%size + size) % size }

// periodic moves an area around the edges, as many pieces of it at once as there are owners, or room for.
func (m *Matrix[T]) periodic(op string, a Area, near []T, move func([]T, []window.Piece) error) error {
	down, along, err := a.around(m.rd.n, m.cd.n, len(near))
	if err != nil {
		return transport.NewOpError(op, -1, err)
	}
	var pieces [together]window.Piece
	n := 0
	for i, rows := range down.around(m.rd.n) {
		for j, cols := range along.around(m.cd.n) {
			part := Area{Row: rows.lo, Col: cols.lo, Rows: rows.n, Cols: cols.n, RowStep: rows.step, ColStep: cols.step}
			for c := m.cut(part, i*along.n+j, along.n); ; n = 0 {
				if n += c.fill(pieces[n:]); n < len(pieces) {
					break // the part is through
				}
				if err := move(near, pieces[:]); err != nil {
					return err
				}
			}
		}
	}
	return move(near, pieces[:n]) // none of no elements, too: the window may have been freed
}

// around verifies a against a matrix of rows by cols elements without edges, and the length of the slice for its elements.
func (a Area) around(rows, cols, length int) (down, along line, err error) {
	for _, step := range []*int{&a.RowStep, &a.ColStep} {
		if *step == 0 {
			*step = 1
		}
	}
	switch {
	case a.Rows < 0 || a.Cols < 0 || a.RowStep < 0 || a.ColStep < 0:
		err = fmt.Errorf("%w: %d by %d elements, %d and %d apart: needed no negative number", ErrRange, a.Rows, a.Cols, a.RowStep, a.ColStep)
	case a.Cols != 0 && length/a.Cols != a.Rows || length != a.Rows*a.Cols:
		err = fmt.Errorf("%w: a slice of %d elements for %d by %d", ErrRange, length, a.Rows, a.Cols)
	case length > 0 && (rows == 0 || cols == 0):
		err = fmt.Errorf("%w: %d by %d elements of a matrix of %d by %d, which has none", ErrRange, a.Rows, a.Cols, rows, cols)
	case length == 0:
		return line{}, line{}, nil
	}
	down, along = a.lines()
	return down, along, err
}

// around cuts a line that goes around a dimension of size elements, and is not empty, into lines within it: at is the number of
// a line's first element in l.
func (l line) around(size int) iter.Seq2[int, line] {
	return func(yield func(at int, part line) bool) {
		if l.n == 0 {
			return
		}
		lo, step := l.lo%size, (l.step-1)%size+1 // by a step of size more the same elements are met
		if lo < 0 {
			lo += size
		}
		for at := 0; at < l.n; {
			part := line{lo: lo, n: min(l.n-at, (size-1-lo)/step+1), step: step}
			if !yield(at, part) {
				return
			}
			at += part.n
			lo = lo + part.n*step - size // part.n steps are the fewest that lead behind the edge, and lead no further than the next
		}
	}
}
