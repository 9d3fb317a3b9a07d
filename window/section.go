package window

import (
	"fmt"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/transport"
)

// Section says which elements a strided transfer moves: Rows rows of Cols elements. At the target, Stride elements lie
// between the beginnings of neighbouring rows and Step between neighbours in a row; in the caller's slice NearStride
// and NearStep do, from element 0 on. Strides may be negative at the target; where places at the receiving end
// coincide, one of the elements ends there.
type Section struct {
	Rows, Cols           int
	Stride, Step         int
	NearStride, NearStep int
}

// Packed returns the section of rows by cols elements that lie stride apart by rows, each row without gaps, at the
// target, and without any gap in the caller's slice.
func Packed(rows, cols, stride int) Section {
	return Section{Rows: rows, Cols: cols, Stride: stride, Step: 1, NearStride: cols, NearStep: 1}
}

// dense reports whether rows are contiguous at both ends.
func (s Section) dense() bool { return s.Cols == 1 || s.Step == 1 && s.NearStep == 1 }

// once is s less the rows, and the columns, that move what the ones before them have moved: they lie at one place at both ends.
func (s Section) once() Section {
	if s.Stride == 0 && s.NearStride == 0 {
		s.Rows = min(s.Rows, 1)
	}
	if s.Step == 0 && s.NearStep == 0 {
		s.Cols = min(s.Cols, 1)
	}
	return s
}

// most is more elements than there are anywhere.
const most = 1 << 48

// reach returns the lowest and highest of the places i*stride + j*step for i < rows, j < cols; ok is false if they
// are no places of any slice. There is at least one row and one column.
func reach(rows, cols, stride, step int) (lo, hi int, ok bool) {
	for _, d := range [2][2]int{{rows - 1, stride}, {cols - 1, step}} {
		n, s := d[0], d[1]
		if s < 0 {
			s = -s
		}
		switch {
		case s < 0 || n > 0 && s > most/n: // the first is the smallest integer, which has no negative
			return 0, 0, false
		case d[1] < 0:
			lo -= n * s
		default:
			hi += n * s
		}
	}
	return lo, hi, true
}

// section verifies a strided transfer before anything moves; near is the length of the caller's slice. It returns
// whether there is anything to move.
func (w *core) section(op string, target, disp, near int, s Section) (some bool, err error) {
	if err := w.checkTarget(op, target); err != nil {
		return false, err
	}
	r := &w.remotes[target]
	if s.Rows < 0 || s.Cols < 0 {
		return false, transport.NewOpError(op, r.Rank, fmt.Errorf("%w: a section of %d by %d elements", ErrRange, s.Rows, s.Cols))
	}
	if s.Rows == 0 || s.Cols == 0 {
		return false, nil
	}
	if lo, hi, ok := reach(s.Rows, s.Cols, s.NearStride, s.NearStep); !ok || lo < 0 || hi >= near { // the first one is element 0
		return false, transport.NewOpError(op, r.Rank,
			fmt.Errorf("%w: %d by %d elements, %d and %d apart, do not lie in a slice of %d", ErrRange, s.Rows, s.Cols, s.NearStride, s.NearStep, near))
	}
	if few := s.once(); few.Rows > most/few.Cols {
		return false, transport.NewOpError(op, r.Rank, fmt.Errorf("%w: a section of %d by %d elements", ErrRange, s.Rows, s.Cols))
	}
	have := r.Bytes / w.elem.Bytes
	if lo, hi, ok := reach(s.Rows, s.Cols, s.Stride, s.Step); !ok || disp < 0 || disp >= have || disp+lo < 0 || disp+hi >= have {
		return false, transport.NewOpError(op, r.Rank,
			fmt.Errorf("%w: %d by %d elements, %d and %d apart from element %d on, do not lie in a part of %d",
				ErrRange, s.Rows, s.Cols, s.Stride, s.Step, disp, have))
	}
	return true, nil
}

// runs returns how many contiguous pieces a section has.
func (s Section) runs() int {
	s = s.once()
	switch {
	case s.Rows == 0 || s.Cols == 0:
		return 0
	case s.dense():
		return s.Rows
	}
	return s.Rows * s.Cols
}

// run returns piece i of a section whose first elements are disp at the target and near in the caller's slice.
func (w *core) run(target, disp, near int, s Section, i int) proto.Run {
	s = s.once()
	r, size := &w.remotes[target], w.elem.Bytes
	if s.dense() {
		return proto.Run{To: r, Far: (disp + i*s.Stride) * size, Near: (near + i*s.NearStride) * size, Bytes: s.Cols * size}
	}
	row, col := i/s.Cols, i%s.Cols
	return proto.Run{
		To: r, Far: (disp + row*s.Stride + col*s.Step) * size, Near: (near + row*s.NearStride + col*s.NearStep) * size, Bytes: size,
	}
}

// mapped returns target's part if it is used directly.
func mapped[T any](w *Window[T], target int) []T {
	if uint(target) < uint(len(w.parts)) {
		if p, n := w.parts[target].direct(); n != 0 {
			return p.s
		}
	}
	return nil
}

// move copies a section of mapped memory: the elements of dst from at on, step and stride apart, become those of src from
// from on, with its own step and stride. An empty section is one anywhere.
func move[T any](rows, cols int, dst []T, at, stride, step int, src []T, from, fromStride, fromStep int) {
	if rows == 0 || cols == 0 {
		return
	}
	if stride == 0 && fromStride == 0 {
		rows = 1 // as Section.once
	}
	if step == 0 && fromStep == 0 {
		cols = 1
	}
	if cols == 1 { // a column is a row of such steps
		rows, cols, step, fromStep = 1, rows, stride, fromStride
	}
	for row := range rows {
		to, of := at+row*stride, from+row*fromStride
		if step == 1 && fromStep == 1 {
			if long[T](cols) {
				copyLong(dst[to:to+cols], src[of:])
			} else {
				copy(dst[to:to+cols], src[of:])
			}
			continue
		}
		for range cols {
			dst[to] = src[of]
			to, of = to+step, of+fromStep
		}
	}
}

// PutSection copies a section of src to target's part, whose first element there is disp. It completes like a Put.
// Through a NIC the rows go out in chains of many at once. (MPI: a vector or subarray type; OpenSHMEM: ibput.)
func (w *Window[T]) PutSection(target, disp int, src []T, s Section) error {
	const op = "put-section"
	if some, err := w.c.section(op, target, disp, len(src), s); err != nil || !some {
		return err
	}
	if p := mapped(w, target); p != nil {
		move(s.Rows, s.Cols, p, disp, s.Stride, s.Step, src, 0, s.NearStride, s.NearStep)
		return nil
	}
	return w.c.moveSection(true, op, target, disp, mem.Of(src), s)
}

// GetSection copies a section of target's part, whose first element is disp, to dst, and returns when it is there.
func (w *Window[T]) GetSection(target, disp int, dst []T, s Section) error {
	const op = "get-section"
	if some, err := w.c.section(op, target, disp, len(dst), s); err != nil || !some {
		return err
	}
	if p := mapped(w, target); p != nil {
		move(s.Rows, s.Cols, dst, 0, s.NearStride, s.NearStep, p, disp, s.Stride, s.Step)
		return nil
	}
	return w.c.moveSection(false, op, target, disp, mem.Of(dst), s)
}

// moveSection asks the engine.
func (w *core) moveSection(put bool, op string, target, disp int, near mem.Range, s Section) error {
	if err := w.gone(op, target); err != nil {
		return err
	}
	return w.moveRuns(put, op, s.runs(), func(i int) proto.Run { return w.run(target, disp, 0, s, i) }, near)
}

// moveRuns asks the engine for a transfer of many pieces.
func (w *core) moveRuns(put bool, op string, count int, run func(i int) proto.Run, near mem.Range) error {
	near = w.near(near)
	if w.race != nil {
		w.checkRuns(put, op, count, run, near)
	}
	if put {
		return w.e.PutRuns(op, count, run, near)
	}
	return w.e.GetRuns(op, count, run, near)
}

// Piece is a section of one member's part in a transfer that has several: its first element is Disp there, and Near in
// the caller's slice.
type Piece struct {
	Target, Disp, Near int
	Section
}

// PutSections is PutSection for several pieces of src, to one target or to many, which go out in chains together; what is short and without gaps at its target as one
// transfer each, by way of a buffer of up to 1 MiB that the window keeps.
func (w *Window[T]) PutSections(src []T, pieces []Piece) error {
	const op = "put-sections"
	count, err := w.c.pieces(op, len(src), pieces)
	if err != nil || count == 0 {
		return err
	}
	if w.c.direct.Load() != 0 {
		for _, p := range pieces {
			move(p.Rows, p.Cols, w.parts[p.Target].s, p.Disp, p.Stride, p.Step, src, p.Near, p.NearStride, p.NearStep)
		}
		return nil
	}
	if n, others := w.c.packing(pieces, count); n > 0 {
		return w.pack(true, op, src, pieces, n, others)
	}
	return w.c.movePieces(true, op, count, pieces, mem.Of(src))
}

// GetSections is GetSection for several pieces of dst, from one target or from many; all are under way together. What is short and without gaps at its target comes as
// for PutSections.
func (w *Window[T]) GetSections(dst []T, pieces []Piece) error {
	const op = "get-sections"
	count, err := w.c.pieces(op, len(dst), pieces)
	if err != nil || count == 0 {
		return err
	}
	if w.c.direct.Load() != 0 {
		for _, p := range pieces {
			move(p.Rows, p.Cols, dst, p.Near, p.NearStride, p.NearStep, w.parts[p.Target].s, p.Disp, p.Stride, p.Step)
		}
		return nil
	}
	if n, others := w.c.packing(pieces, count); n > 0 {
		return w.pack(false, op, dst, pieces, n, others)
	}
	return w.c.movePieces(false, op, count, pieces, mem.Of(dst))
}

// movePieces asks the engine.
func (w *core) movePieces(put bool, op string, count int, pieces []Piece, near mem.Range) error {
	if err := w.gonePieces(op, pieces); err != nil {
		return err
	}
	c := cursor{pieces: pieces}
	return w.moveRuns(put, op, count, func(i int) proto.Run { return c.run(w, i) }, near)
}

// pieces verifies all pieces before anything moves and returns how many runs they have together.
func (w *core) pieces(op string, near int, pieces []Piece) (count int, err error) {
	if len(pieces) == 0 {
		return 0, w.usable(op)
	}
	for _, p := range pieces {
		if p.Near < 0 || p.Near > near {
			return 0, transport.NewOpError(op, w.named(p.Target), fmt.Errorf("%w: element %d of a slice of %d", ErrRange, p.Near, near))
		}
		if _, err := w.section(op, p.Target, p.Disp, near-p.Near, p.Section); err != nil {
			return 0, err
		}
		count += p.runs()
	}
	return count, nil
}

// gonePieces is gone for all that pieces move something to or from.
func (w *core) gonePieces(op string, pieces []Piece) error {
	for _, p := range pieces {
		if p.runs() == 0 {
			continue
		}
		if err := w.gone(op, p.Target); err != nil {
			return err
		}
	}
	return nil
}

// cursor finds the piece that a run belongs to; it is asked for runs in ascending order, mostly.
type cursor struct {
	pieces   []Piece
	unpacked bool // of those that are packed there are no runs
	k        int  // the piece that was asked for last
	before   int  // runs of those before it
}

// runs is how many runs piece k has.
func (c *cursor) runs(w *core, k int) int {
	if c.unpacked && c.pieces[k].packs(w.elem.Bytes) {
		return 0
	}
	return c.pieces[k].runs()
}

func (c *cursor) run(w *core, i int) proto.Run {
	for i < c.before {
		c.k--
		c.before -= c.runs(w, c.k)
	}
	for n := c.runs(w, c.k); i-c.before >= n; n = c.runs(w, c.k) {
		c.before += n
		c.k++
	}
	p := &c.pieces[c.k]
	return w.run(p.Target, p.Disp, p.Near, p.Section, i-c.before)
}

// PutStrided copies n elements of src, srcStride apart, to elements of target's part from disp on, stride apart. It
// completes like a Put. (OpenSHMEM: iput.)
func (w *Window[T]) PutStrided(target, disp, stride int, src []T, srcStride, n int) error {
	return w.PutSection(target, disp, src, Section{Rows: 1, Cols: n, Step: stride, NearStep: srcStride})
}

// GetStrided copies n elements of target's part from disp on, stride apart, to elements of dst, dstStride apart, and
// returns when they are there. (OpenSHMEM: iget.)
func (w *Window[T]) GetStrided(target, disp, stride int, dst []T, dstStride, n int) error {
	return w.GetSection(target, disp, dst, Section{Rows: 1, Cols: n, Step: stride, NearStep: dstStride})
}
