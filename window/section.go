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

// far returns the place of element (row, col) relative to the first one's at the target, near in the slice.
func (s Section) far(row, col int) int  { return row*s.Stride + col*s.Step }
func (s Section) near(row, col int) int { return row*s.NearStride + col*s.NearStep }

// reach returns the lowest and highest of the places i*stride + j*step for i < rows, j < cols; ok is false if they
// are no places of any slice. There is at least one row and one column.
func reach(rows, cols, stride, step int) (lo, hi int, ok bool) {
	const most = 1 << 48
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
	if err := w.check(op, target, 0, 0); err != nil {
		return false, err
	}
	r := &w.remotes[target]
	if s.Rows < 0 || s.Cols < 0 {
		return false, transport.NewOpError(op, r.Rank, fmt.Errorf("%w: a section of %d by %d elements", ErrRange, s.Rows, s.Cols))
	}
	if s.Rows == 0 || s.Cols == 0 {
		return false, nil
	}
	if lo, hi, ok := reach(s.Rows, s.Cols, s.NearStride, s.NearStep); !ok || lo < 0 || hi >= near {
		return false, transport.NewOpError(op, r.Rank,
			fmt.Errorf("%w: %d by %d elements, %d and %d apart, do not lie in a slice of %d", ErrRange, s.Rows, s.Cols, s.NearStride, s.NearStep, near))
	}
	have := r.Bytes / w.elem.Bytes
	if lo, hi, ok := reach(s.Rows, s.Cols, s.Stride, s.Step); !ok || disp < 0 || disp >= have || disp+lo < 0 || disp+hi >= have {
		return false, transport.NewOpError(op, r.Rank,
			fmt.Errorf("%w: %d by %d elements, %d and %d apart from element %d on, do not lie in a part of %d",
				ErrRange, s.Rows, s.Cols, s.Stride, s.Step, disp, have))
	}
	return true, nil
}

// runs are the contiguous pieces of a section.
func (w *core) runs(target, disp int, s Section) (count int, run func(i int) proto.Run) {
	r, size := &w.remotes[target], w.elem.Bytes
	if s.dense() {
		return s.Rows, func(i int) proto.Run {
			return proto.Run{To: r, Far: (disp + i*s.Stride) * size, Near: i * s.NearStride * size, Bytes: s.Cols * size}
		}
	}
	return s.Rows * s.Cols, func(i int) proto.Run {
		row, col := i/s.Cols, i%s.Cols
		return proto.Run{To: r, Far: (disp + s.far(row, col)) * size, Near: s.near(row, col) * size, Bytes: size}
	}
}

// mapped returns target's part if it is used directly.
func (w *Window[T]) mapped(target int) []T {
	if uint(target) < uint(len(w.parts)) {
		return w.parts[target].s
	}
	return nil
}

// PutSection copies a section of src to target's part, whose first element there is disp. It completes like a Put.
// Through a NIC the rows go out in chains of many at once. (MPI: a vector or subarray type; OpenSHMEM: ibput.)
func (w *Window[T]) PutSection(target, disp int, src []T, s Section) error {
	const op = "put-section"
	if some, err := w.section(op, target, disp, len(src), s); err != nil || !some {
		return err
	}
	if p := w.mapped(target); p != nil {
		for row := range s.Rows {
			at, from := disp+row*s.Stride, row*s.NearStride
			if s.dense() {
				copy(p[at:at+s.Cols], src[from:])
				continue
			}
			for range s.Cols {
				p[at] = src[from]
				at, from = at+s.Step, from+s.NearStep
			}
		}
		return nil
	}
	count, run := w.runs(target, disp, s)
	return w.e.PutRuns(op, count, run, mem.Of(src))
}

// GetSection copies a section of target's part, whose first element is disp, to dst, and returns when it is there.
func (w *Window[T]) GetSection(target, disp int, dst []T, s Section) error {
	const op = "get-section"
	if some, err := w.section(op, target, disp, len(dst), s); err != nil || !some {
		return err
	}
	if p := w.mapped(target); p != nil {
		for row := range s.Rows {
			at, to := disp+row*s.Stride, row*s.NearStride
			if s.dense() {
				copy(dst[to:to+s.Cols], p[at:])
				continue
			}
			for range s.Cols {
				dst[to] = p[at]
				at, to = at+s.Step, to+s.NearStep
			}
		}
		return nil
	}
	count, run := w.runs(target, disp, s)
	return w.e.GetRuns(op, count, run, mem.Of(dst))
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
