package grid

import (
	"fmt"
	"hash/fnv"
	"slices"

	"gopgas/pgas"
)

// Config says how an array lies on its team. The zero Config chooses blocks with little surface, of lengths as equal as can be, without ghost cells.
// It is the same on all members.
type Config struct {
	// Parts is into how many blocks each dimension is cut. Together they are the team's size; the last dimension's number changes quickest with the
	// member's. nil, and 0 in a dimension: chosen.
	Parts []int
	// Blocks has the lengths of the blocks in each dimension, which together are the shape's; some may be 0. nil, and nil in a dimension: as equal
	// as can be, the larger ones first. (Global Arrays: NGA_Create_irreg.)
	Blocks [][]int
	// Ghost is the width of the frame of ghost cells in each dimension, at both ends. nil: none.
	Ghost []int
	// Periodic says of each dimension whether the last element lies before the first for ghost cells. nil: not. Ghost cells outside an array that
	// is not periodic are their owner's own: the library does not touch them.
	Periodic []bool
	// Faces leaves the corners of the frame out: only what lies straight before and behind the block in one dimension is renewed, which is all that a
	// stencil without diagonals needs, of up to two neighbours in each dimension instead of three to the power of the dimensions, less one. The
	// corners are their owner's own. (Global Arrays: GA_Set_ghost_corner_flag.)
	Faces bool
}

// fit verifies c for an array of this shape on p members, and returns it with what was left to choose.
func (c Config) fit(shape []int, p int) (Config, error) {
	const longest, widest = 1 << 31, 1 << 20
	n := len(shape)
	if n < 1 || n > MaxDims {
		return c, fmt.Errorf("%w: an array of %d dimensions, needed from 1 to %d", pgas.ErrRange, n, MaxDims)
	}
	for d, k := range shape {
		if k < 0 || k > longest {
			return c, fmt.Errorf("%w: %d elements in dimension %d, needed from 0 to %d", pgas.ErrRange, k, d, longest)
		}
	}
	for _, given := range []struct {
		what string
		len  int
	}{{"Parts", len(c.Parts)}, {"Blocks", len(c.Blocks)}, {"Ghost", len(c.Ghost)}, {"Periodic", len(c.Periodic)}} {
		if given.len != 0 && given.len != n {
			return c, fmt.Errorf("%w: %s for %d dimensions, and the array has %d", pgas.ErrConfig, given.what, given.len, n)
		}
	}
	for d, g := range c.Ghost {
		if g < 0 || g > widest {
			return c, fmt.Errorf("%w: ghost cells of width %d in dimension %d, needed from 0 to %d", pgas.ErrConfig, g, d, widest)
		}
	}
	parts := make([]int, n)
	copy(parts, c.Parts)
	for d, lengths := range c.Blocks {
		if lengths == nil {
			continue
		}
		if parts[d] == 0 {
			parts[d] = len(lengths)
		}
		rest := shape[d]
		for _, k := range lengths {
			if k < 0 || k > rest {
				rest = -1
				break
			}
			rest -= k
		}
		if rest != 0 || parts[d] != len(lengths) || len(lengths) == 0 {
			return c, fmt.Errorf("%w: blocks of %d in dimension %d; needed %d lengths, %d together", pgas.ErrConfig, lengths, d, max(1, parts[d]), shape[d])
		}
	}
	chosen := choose(shape, parts, p)
	if chosen == nil {
		return c, fmt.Errorf("%w: a grid of %v blocks for a team of %d members; needed: together they are %d (where one is 0 it is chosen, if the others "+
			"divide that)", pgas.ErrConfig, parts, p, p)
	}
	c.Parts = chosen
	l := newLayout(shape, c)
	if l.room() < 0 {
		return c, fmt.Errorf("%w: a part has more than %d elements", pgas.ErrRange, mostLength)
	}
	return c, nil
}

// describe tells what an array is, for members to compare.
func (c Config) describe(shape []int) string {
	blocks := fmt.Sprint(c.Blocks)
	if len(blocks) > 100 {
		h := fnv.New64a()
		h.Write([]byte(blocks))
		blocks = fmt.Sprintf("lengths with hash %x", h.Sum64())
	}
	return fmt.Sprintf("an array of %v in %v blocks, lengths %s, ghost cells %v, periodic %v, faces only %v", shape, c.Parts, blocks, c.Ghost, c.Periodic, c.Faces)
}

// choose fills in the zeros of parts, so that together they are p: the grid whose largest block has least elements and, with them, least neighbours. Of
// equal ones that which cuts the first dimensions more, so that rows stay long. nil if there is none.
func choose(shape, parts []int, p int) []int {
	var best []int
	var least float64
	var divisors []int
	for r := p; r >= 1; r-- {
		if p%r == 0 {
			divisors = append(divisors, r)
		}
	}
	try := slices.Clone(parts)
	var search func(d, rest int)
	search = func(d, rest int) {
		if d == len(parts) {
			if rest == 1 {
				if cost := work(shape, try); best == nil || cost < least {
					best, least = slices.Clone(try), cost
				}
			}
			return
		}
		for _, r := range divisors {
			if rest%r == 0 && (parts[d] == 0 || parts[d] == r) {
				try[d] = r
				search(d+1, rest/r)
			}
		}
	}
	search(0, p)
	return best
}

// work is the number of elements of the largest block, and of those beyond the faces that it shares with others.
func work(shape, parts []int) float64 {
	volume, shared := 1.0, 0.0
	for d, n := range shape {
		edge := float64((n + parts[d] - 1) / parts[d])
		volume *= edge
		if parts[d] > 1 && edge > 0 {
			shared += float64(min(2, parts[d]-1)) / edge
		}
	}
	return volume * (1 + shared)
}

// layout is how an array lies in the parts of its members: pure index mathematics.
type layout struct {
	n                   int // dimensions
	shape, parts, ghost dims
	periodic            [MaxDims]bool
	faces               bool           // the frame has no corners
	starts              [MaxDims][]int // of each dimension: the first index of each block, and behind the last one the shape's
}

// newLayout makes a layout of what was verified.
func newLayout(shape []int, c Config) layout {
	l := layout{n: len(shape), faces: c.Faces}
	copy(l.shape[:], shape)
	copy(l.parts[:], c.Parts)
	copy(l.ghost[:], c.Ghost)
	copy(l.periodic[:], c.Periodic)
	for d, p := range c.Parts {
		l.starts[d] = make([]int, p+1)
		for k := range p {
			length := shape[d] / p
			if k < shape[d]%p {
				length++
			}
			if len(c.Blocks) > 0 && c.Blocks[d] != nil {
				length = c.Blocks[d][k]
			}
			l.starts[d][k+1] = l.starts[d][k] + length
		}
	}
	return l
}

// empty reports whether the array has no elements.
func (l *layout) empty() bool {
	return slices.Contains(l.shape[:l.n], 0)
}

// room returns how many elements the largest part has, with its ghost cells; -1: too many.
func (l *layout) room() int {
	n, large := 1, false
	for d := range l.n {
		most := 0
		for k := range l.parts[d] {
			most = max(most, l.extent(d, k))
		}
		switch {
		case most == 0:
			return 0 // however long the other dimensions are
		case most > mostLength/n:
			large = true
		default:
			n *= most
		}
	}
	if large {
		return -1
	}
	return n
}

// extent returns how long block k of a dimension is, with its ghost cells.
func (l *layout) extent(d, k int) int { return l.starts[d][k+1] - l.starts[d][k] + 2*l.ghost[d] }

// coord returns the block of dimension d that has index i, which exists: the last one that begins there or before.
func (l *layout) coord(d, i int) int {
	starts := l.starts[d]
	lo, hi := 0, l.parts[d]
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; starts[mid] <= i {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// coords returns which block of each dimension a member has.
func (l *layout) coords(member int) (at dims) {
	for d := l.n - 1; d >= 0; d-- {
		at[d] = member % l.parts[d]
		member /= l.parts[d]
	}
	return at
}

// member is the inverse of coords.
func (l *layout) member(at *dims) (member int) {
	for d := range l.n {
		member = member*l.parts[d] + at[d]
	}
	return member
}

// strides returns how far apart neighbours lie in each dimension of the part of the member with these coords, and how many elements it has.
func (l *layout) strides(at *dims) (strides dims, all int) {
	all = 1
	for d := l.n - 1; d >= 0; d-- {
		strides[d] = all
		all *= l.extent(d, at[d])
	}
	return strides, all
}

// owner returns the member that owns the element at an index, which exists, and its place there.
func (l *layout) owner(at []int) (member, disp int) {
	stride, below := 1, 1
	for d := l.n - 1; d >= 0; d-- {
		k := l.coord(d, at[d])
		disp += (at[d] - l.starts[d][k] + l.ghost[d]) * stride
		stride *= l.extent(d, k)
		member += k * below
		below *= l.parts[d]
	}
	return member, disp
}

// check verifies an index.
func (l *layout) check(at []int) error {
	if len(at) == l.n {
		inside := true
		for d, i := range at {
			inside = inside && uint(i) < uint(l.shape[d])
		}
		if inside {
			return nil
		}
	}
	return fmt.Errorf("%w: element %v of an array of %v", pgas.ErrRange, slices.Clone(at), slices.Clone(l.shape[:l.n])) // clones, so that callers' indices stay on the stack
}
