package grid

import (
	"fmt"

	"gopgas/pgas"
)

// MaxDims is how many dimensions an array may have.
const MaxDims = 7

// dims is a number for each dimension.
type dims [MaxDims]int

// Box names elements of an array: those from Lo to before Hi in each dimension. With a Step above 1 it takes only every so manieth. A box
// without elements is legal, too, where Lo and Hi are in order, and in the array or at its end.
type Box struct {
	Lo, Hi []int
	Step   []int // nil, and 0 in a dimension: 1
}

// Shape returns how many elements the box has in each dimension. It allocates.
func (b Box) Shape() []int {
	shape := make([]int, len(b.Lo))
	for d := range shape {
		if step := b.step(d); d < len(b.Hi) && step > 0 && b.Hi[d] > b.Lo[d] {
			shape[d] = (b.Hi[d]-b.Lo[d]-1)/step + 1
		}
	}
	return shape
}

// Len returns how many elements the box has: the length of the slice that a transfer of it takes.
func (b Box) Len() int {
	n := 1
	for _, k := range b.Shape() {
		n *= k
	}
	return n
}

// String writes the box as ranges, with steps where there are some: [0:4 10:20:2].
func (b Box) String() string {
	s := make([]string, len(b.Lo))
	for d := range s {
		if d < len(b.Hi) {
			s[d] = fmt.Sprintf("%d:%d", b.Lo[d], b.Hi[d])
		}
		if step := b.step(d); step != 1 {
			s[d] += fmt.Sprintf(":%d", step)
		}
	}
	return fmt.Sprint(s)
}

func (b Box) step(d int) int {
	if d >= len(b.Step) || b.Step[d] == 0 {
		return 1
	}
	return b.Step[d]
}

// line is n elements of one dimension, from lo on, step apart.
type line struct{ lo, n, step int }

// lines are those of a box, and how many elements it has.
type lines struct {
	of  [MaxDims]line
	len int
}

// Sums and products of what is let through stay far from overflow.
const (
	farthest   = 1 << 46 // an index of a box that goes around
	mostLength = 1 << 46 // elements of a box, or of a part
)

// lines verifies a box of an array of this layout; if around, one that goes on for ever in all directions. near is the length of the slice for its elements.
func (l *layout) lines(b Box, near int, around bool) (lines, error) {
	out := lines{len: 1}
	if len(b.Lo) != l.n || len(b.Hi) != l.n || len(b.Step) != 0 && len(b.Step) != l.n {
		return out, fmt.Errorf("%w: a box with %d, %d and %d numbers of an array of %d dimensions; needed that many as Lo, as Hi, and as Step or none",
			pgas.ErrRange, len(b.Lo), len(b.Hi), len(b.Step), l.n)
	}
	long := false
	for d := range l.n {
		lo, hi, step := b.Lo[d], b.Hi[d], b.step(d)
		least, most := 0, l.shape[d]
		if around {
			least, most = -farthest, farthest
		}
		if lo < least || hi < lo || hi > most || step < 1 {
			return out, fmt.Errorf("%w: box %s of an array of %v: in dimension %d needed %d <= Lo <= Hi <= %d and a step of 1 or more",
				pgas.ErrRange, b.String(), l.shape[:l.n], d, least, most)
		}
		ln := line{lo: lo, step: 1}
		if lo < hi {
			ln.n = (hi-lo-1)/step + 1
		}
		if ln.n > 1 {
			ln.step = step // from one element to no other there is no step
		}
		out.of[d] = ln
		if ln.n > 0 && out.len > mostLength/ln.n {
			long = true // unless another dimension has none
		} else {
			out.len *= ln.n
		}
	}
	if long && out.len > 0 {
		return out, fmt.Errorf("%w: box %s has more than %d elements", pgas.ErrRange, b.String(), mostLength)
	}
	if out.len != near {
		return out, fmt.Errorf("%w: a slice of %d elements for box %s, which has %d", pgas.ErrRange, near, b.String(), out.len)
	}
	if out.len > 0 && l.empty() {
		return out, fmt.Errorf("%w: box %s of an array of %v, which has no elements", pgas.ErrRange, b.String(), l.shape[:l.n])
	}
	return out, nil
}

// packed returns how far apart neighbours lie in each dimension of a dense slice with the box's elements.
func (ls *lines) packed(n int) dims {
	var strides dims
	stride := 1
	for d := n - 1; d >= 0; d-- {
		strides[d] = stride
		stride *= ls.of[d].n
	}
	return strides
}
