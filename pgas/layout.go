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
	n, p  int
	small int // n / p: what the ranks with fewer elements own
	large int // how many ranks, the first ones, own one more
	edge  int // the first element that is not theirs, in a block layout
}

func newDist(l Layout, n, p int) dist {
	d := dist{Layout: l, n: n, p: p, small: n / p, large: n % p}
	d.edge = d.large * (d.small + 1)
	return d
}

// owner returns the rank of element i and its place in that rank's part.
func (d dist) owner(i int) (rank, disp int) {
	if d.kind == cyclic {
		return i % d.p, i / d.p
	}
	if i < d.edge {
		return i / (d.small + 1), i % (d.small + 1)
	}
	i -= d.edge
	rank = i / d.small
	return d.large + rank, i - rank*d.small
}

// count returns how many elements rank owns.
func (d dist) count(rank int) int {
	if rank < d.large {
		return d.small + 1
	}
	return d.small
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
	return rank*d.small + min(rank, d.large)
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
