package grid

import "gopgas/window"

// span is what of a line one block of a dimension has: elements number at to at+n of the line, from place in of the block on.
type span struct{ coord, at, n, in int }

// span returns the span of ln that begins at its element number at, which is there. A line that leaves the array comes in at the other end.
func (l *layout) span(d int, ln line, at int) span {
	i := ln.lo + at*ln.step
	if size := l.shape[d]; uint(i) >= uint(size) {
		i = (i%size + size) % size
	}
	k := l.coord(d, i)
	return span{coord: k, at: at, n: min(ln.n-at, (l.starts[d][k+1]-1-i)/ln.step+1), in: i - l.starts[d][k]}
}

// walk finds the sections of a box, an owner's share after the other: each of the box's elements once.
type walk struct {
	l     *layout
	lines *lines
	from  int  // where in the caller's slice the first element is
	near  dims // and how far apart neighbours are there
	spans [MaxDims]span
	more  bool
	piece window.Piece  // the next one
	outer [MaxDims]axis // dimensions that count the sections of a share
	deep  int           // how many of them there are
}

// axis is one dimension of a share: n elements, so far apart in the owner's part and in the caller's slice.
type axis struct{ n, far, near, i int }

// walk begins a walk through a box that was verified.
func (l *layout) walk(ls *lines, from int, near dims) walk {
	w := walk{l: l, lines: ls, from: from, near: near, more: ls.len > 0}
	if w.more {
		for d := range l.n {
			w.spans[d] = l.span(d, ls.of[d], 0)
		}
		w.share()
	}
	return w
}

// share begins the share of the owner that the spans name.
func (w *walk) share() {
	var at dims
	for d := range w.l.n {
		at[d] = w.spans[d].coord
	}
	strides, _ := w.l.strides(&at)
	far, near := 0, w.from
	var axes [MaxDims]axis // from the inside out
	k := 0
	for d := w.l.n - 1; d >= 0; d-- {
		s := &w.spans[d]
		far += (s.in + w.l.ghost[d]) * strides[d]
		near += s.at * w.near[d]
		a := axis{n: s.n, far: strides[d] * w.lines.of[d].step, near: w.near[d]}
		switch {
		case a.n == 1: // counts nothing
		case k > 0 && a.far == axes[k-1].n*axes[k-1].far && a.near == axes[k-1].n*axes[k-1].near:
			axes[k-1].n *= a.n // the next row begins where this one ends, at both ends
		default:
			axes[k] = a
			k++
		}
	}
	row, col := axis{n: 1, far: 1, near: 1}, axis{n: 1, far: 1, near: 1}
	if k > 0 {
		col = axes[0]
	}
	if k > 1 {
		row = axes[1]
	}
	w.deep = copy(w.outer[:], axes[min(k, 2):k])
	w.piece = window.Piece{Target: w.l.member(&at), Disp: far, Near: near, Section: window.Section{
		Rows: row.n, Cols: col.n, Stride: row.far, Step: col.far, NearStride: row.near, NearStep: col.near,
	}}
}

// fill stores the next sections, as many as there are and find room, and returns how many it stored.
func (w *walk) fill(pieces []window.Piece) (n int) {
	for ; n < len(pieces) && w.more; n++ {
		pieces[n] = w.piece
		w.next()
	}
	return n
}

// next goes on to the next section of this share, or to the next share.
func (w *walk) next() {
	for k := range w.outer[:w.deep] {
		a := &w.outer[k]
		w.piece.Disp, w.piece.Near = w.piece.Disp+a.far, w.piece.Near+a.near
		if a.i++; a.i < a.n {
			return
		}
		w.piece.Disp, w.piece.Near, a.i = w.piece.Disp-a.n*a.far, w.piece.Near-a.n*a.near, 0
	}
	for d := w.l.n - 1; d >= 0; d-- {
		s, ln := &w.spans[d], w.lines.of[d]
		if at := s.at + s.n; at < ln.n {
			*s = w.l.span(d, ln, at)
			w.share()
			return
		}
		*s = w.l.span(d, ln, 0)
	}
	w.more = false
}
