package pgas

import "fmt"

// Layout says which rank owns which elements of an array. Block and Cyclic make one.
type Layout struct{ kind layoutKind }

type layoutKind uint8

const (
	block layoutKind = iota
	cyclic
)

// Block gives each rank one contiguous range; the ranges differ by at most one element, the larger ones first.
func Block() Layout { return Layout{block} }

// Cyclic deals the elements out one by one, like cards.
func Cyclic() Layout { return Layout{cyclic} }

func (l Layout) String() string { return [...]string{"block", "cyclic"}[l.kind] }

// dist is a layout of n elements over p ranks: pure index mathematics.
type dist struct {
	Layout
	n, p int
}

// owner returns the rank of element i and its place in that rank's part.
func (d dist) owner(i int) (rank, disp int) {
	if d.kind == cyclic {
		return i % d.p, i / d.p
	}
	small, large := d.n/d.p, d.n%d.p // the first large ranks have small+1
	if edge := large * (small + 1); i >= edge {
		rank = large + (i-edge)/small
		return rank, (i - edge) % small
	}
	return i / (small + 1), i % (small + 1)
}

// count returns how many elements rank owns.
func (d dist) count(rank int) int {
	c := d.n / d.p
	if rank < d.n%d.p {
		c++
	}
	return c
}

// index is the inverse of owner.
func (d dist) index(rank, disp int) int {
	if d.kind == cyclic {
		return disp*d.p + rank
	}
	return d.first(rank) + disp
}

// first returns the first element that rank owns; for a rank that owns none it is n or, in a block layout, where its
// range would begin.
func (d dist) first(rank int) int {
	if d.kind == cyclic {
		return min(rank, d.n)
	}
	return rank*(d.n/d.p) + min(rank, d.n%d.p)
}

// run returns how many elements from i on lie one after the other in i's owner's part.
func (d dist) run(i int) int {
	if d.kind == cyclic {
		if d.p == 1 {
			return d.n - i
		}
		return 1
	}
	rank, disp := d.owner(i)
	return d.count(rank) - disp
}

// check verifies a range of elements.
func (d dist) check(lo, n int) error {
	if lo < 0 || n < 0 || lo > d.n-n {
		return fmt.Errorf("%w: elements [%d, %d) of an array of %d", ErrRange, lo, lo+n, d.n)
	}
	return nil
}
