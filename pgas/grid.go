package pgas

import (
	"fmt"
	"iter"

	"gopgas/window"
)

// Grid says how a matrix lies on its team. The zero Grid chooses the blocks with the shortest edges, and no ghost cells.
type Grid struct {
	// Rows and Cols are how many blocks the matrix is cut into, top to bottom and left to right; together they are the
	// team's size. Member r has block (r/Cols, r%Cols). 0: chosen; both 0: blocks as near to squares as can be.
	Rows, Cols int
	// Ghost is the width of the frame of ghost cells around every block: copies of the neighbours' elements, which
	// UpdateGhosts renews.
	Ghost int
	// PeriodicRows: above the first row lies the last one, and the other way round; PeriodicCols likewise. Without it
	// ghost cells outside the matrix are the owner's own: the library does not touch them.
	PeriodicRows, PeriodicCols bool
}

// fit returns g with what was left to choose for a matrix of rows by cols elements on p members.
func (g Grid) fit(rows, cols, p int) (Grid, error) {
	const most = 1 << 31 // elements of an edge: their product stays far from overflow
	switch {
	case rows < 0 || cols < 0 || rows > most || cols > most:
		return g, fmt.Errorf("%w: a matrix of %d by %d elements", ErrRange, rows, cols)
	case g.Ghost < 0 || g.Ghost > 1<<20:
		return g, fmt.Errorf("%w: ghost cells of width %d", ErrRange, g.Ghost)
	case g.Rows == 0 && g.Cols == 0:
		best := -1.0
		for r := 1; r <= p; r++ {
			if p%r != 0 {
				continue
			}
			edge := float64(rows)/float64(r) + float64(cols)/float64(p/r)
			if best < 0 || edge < best {
				best, g.Rows, g.Cols = edge, r, p/r
			}
		}
		return g, nil
	case g.Rows == 0 && g.Cols > 0:
		g.Rows = p / g.Cols
	case g.Cols == 0 && g.Rows > 0:
		g.Cols = p / g.Rows
	}
	if g.Rows < 1 || p%g.Rows != 0 || g.Cols != p/g.Rows { // a product could overflow
		return g, fmt.Errorf("%w: a grid of %d by %d blocks for a team of %d members; needed: Rows times Cols is %d (one of them may be 0, if "+
			"the other divides it)", ErrConfig, g.Rows, g.Cols, p, p)
	}
	return g, nil
}

// Area names elements of a matrix: Rows rows from Row on and Cols columns from Col on. With RowStep or ColStep above 1
// it takes only every so manieth row or column; Rows and Cols count those that are taken, and 0 steps mean 1.
type Area struct {
	Row, Col         int
	Rows, Cols       int
	RowStep, ColStep int
}

// within returns a with its steps, or an error if it does not lie in a matrix of rows by cols elements.
func (a Area) within(rows, cols int) (Area, error) {
	for _, l := range []struct{ step, n *int }{{&a.RowStep, &a.Rows}, {&a.ColStep, &a.Cols}} {
		if *l.step == 0 || *l.step > 0 && *l.n == 1 { // from one to no other there is no step
			*l.step = 1
		}
	}
	exists := func(lo, n, step, size int) bool {
		return lo >= 0 && n >= 0 && step >= 1 && lo <= size && (n == 0 || lo < size && n-1 <= (size-1-lo)/step)
	}
	if !exists(a.Row, a.Rows, a.RowStep, rows) || !exists(a.Col, a.Cols, a.ColStep, cols) {
		return a, fmt.Errorf("%w: %d by %d elements from (%d, %d) on, %d and %d apart, of a matrix of %d by %d",
			ErrRange, a.Rows, a.Cols, a.Row, a.Col, a.RowStep, a.ColStep, rows, cols)
	}
	return a, nil
}

// lines are the rows and the columns of an area that was checked.
func (a Area) lines() (down, along line) {
	return line{a.Row, a.Rows, a.RowStep}, line{a.Col, a.Cols, a.ColStep}
}

// span is what of a line of equidistant elements one rank of a block layout owns: numbers at to at+n of the line, from
// place disp of its part on.
type span struct{ rank, at, n, disp int }

// line is n elements of one dimension, from lo on, step apart. All of them exist.
type line struct{ lo, n, step int }

// span returns the span of l that begins at number at; behind the last element it is empty.
func (d dist) span(l line, at int) span {
	if at >= l.n {
		return span{}
	}
	i := l.lo + at*l.step
	rank, disp := d.owner(i)
	return span{rank, at, min(l.n-at, (d.run(i)-1)/l.step+1), disp}
}

// next returns the span behind s.
func (d dist) next(l line, s span) span { return d.span(l, s.at+s.n) }

// blocks is how a matrix lies in the parts of its members: pure index mathematics.
type blocks struct {
	rd, cd dist // of rows over the rows of the grid, of columns over its columns
	g      Grid
	stride int // elements from one row of a part to the next, the same on all members
}

func newBlocks(rows, cols int, g Grid) blocks {
	b := blocks{rd: newDist(Block(), rows, g.Rows), cd: newDist(Block(), cols, g.Cols), g: g}
	b.stride = b.cd.most() + 2*g.Ghost
	return b
}

// place returns where in its owner's part the element in row i and column j of the owner's block lies.
func (b *blocks) place(i, j int) int { return (i+b.g.Ghost)*b.stride + j + b.g.Ghost }

// cut is an area on its way to be cut by owner.
type cut struct {
	b            *blocks
	area         Area
	near, stride int // in the caller's slice: where the area begins, and how far apart its rows do
	down, along  line
	r, c         span // the next piece; empty: none
}

// cut begins to cut an area that was checked.
func (b *blocks) cut(a Area, near, stride int) cut {
	c := cut{b: b, area: a, near: near, stride: stride}
	c.down, c.along = a.lines()
	c.r, c.c = b.rd.span(c.down, 0), b.cd.span(c.along, 0)
	return c
}

// fill stores the next pieces, as many as there are and find room, and returns how many it stored.
func (c *cut) fill(pieces []window.Piece) (n int) {
	for ; n < len(pieces) && c.r.n > 0 && c.c.n > 0; n++ {
		pieces[n] = window.Piece{
			Target: c.r.rank*c.b.g.Cols + c.c.rank, Disp: c.b.place(c.r.disp, c.c.disp), Near: c.near + c.r.at*c.stride + c.c.at,
			Section: window.Section{
				Rows: c.r.n, Cols: c.c.n, Stride: c.area.RowStep * c.b.stride, Step: c.area.ColStep, NearStride: c.stride, NearStep: 1,
			},
		}
		if c.c = c.b.cd.next(c.along, c.c); c.c.n == 0 {
			c.r, c.c = c.b.rd.next(c.down, c.r), c.b.cd.span(c.along, 0)
		}
	}
	return n
}

// wrap cuts the indices lo to lo+n, of which some may lie outside 0 to size, into ranges that lie inside: at is where in
// [lo, lo+n) a range begins, from its first index. If it is periodic, index i is that of i modulo size, else what lies
// outside is left out.
func wrap(lo, n, size int, periodic bool) iter.Seq2[int, [2]int] {
	return func(yield func(at int, r [2]int) bool) {
		if !periodic {
			from, to := max(lo, 0), min(lo+n, size)
			if from < to {
				yield(from-lo, [2]int{from, to})
			}
			return
		}
		for at := 0; at < n && size > 0; {
			from := ((lo+at)%size + size) % size
			k := min(n-at, size-from)
			if !yield(at, [2]int{from, from + k}) {
				return
			}
			at += k
		}
	}
}

// frame returns the four strips of width g around a block, in places relative to the block's first element: the upper
// and the lower one with the corners, then the left and the right one.
func frame(rows, cols, g int) [4]Area {
	return [4]Area{
		{Row: -g, Col: -g, Rows: g, Cols: cols + 2*g},
		{Row: rows, Col: -g, Rows: g, Cols: cols + 2*g},
		{Row: 0, Col: -g, Rows: rows, Cols: g},
		{Row: 0, Col: cols, Rows: rows, Cols: g},
	}
}
