package pgas

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// Layout says which rank owns which elements of an array. Block, Cyclic, BlockCyclic and Irregular make one.
type Layout struct {
	kind   layoutKind
	length int    // of the blocks of a block-cyclic layout
	counts *[]int // of an irregular one: a pointer, so that layouts can be compared
}

type layoutKind uint8

const (
	block layoutKind = iota
	cyclic
	blockCyclic
	irregular
)

// Block gives each rank one contiguous range; the ranges differ by at most one element, the larger ones first.
func Block() Layout { return Layout{kind: block} }

// Cyclic deals the elements out one by one, like cards.
func Cyclic() Layout { return Layout{kind: cyclic} }

// BlockCyclic deals out blocks of length elements; the last one may be shorter.
func BlockCyclic(length int) Layout { return Layout{kind: blockCyclic, length: length} }

// Irregular gives each rank one contiguous range, counts[r] elements to rank r. On every rank as much memory is taken as
// the largest range needs.
func Irregular(counts ...int) Layout {
	counts = slices.Clone(counts)
	return Layout{kind: irregular, counts: &counts}
}

func (l Layout) String() string {
	switch l.kind {
	case blockCyclic:
		return fmt.Sprintf("blocks of %d dealt out", l.length)
	case irregular:
		if c := *l.counts; len(c) <= 16 {
			return fmt.Sprintf("irregular %v", c)
		}
		return fmt.Sprintf("irregular, %d ranges with hash %x", len(*l.counts), xxhash.Sum64String(fmt.Sprint(*l.counts)))
	}
	return [...]string{"block", "cyclic"}[l.kind]
}

// longestBlock keeps the index mathematics from overflowing.
const longestBlock = 1 << 40

// check returns an error unless n elements over p ranks can have the layout.
func (l Layout) check(n, p int) error {
	switch {
	case n < 0:
		return fmt.Errorf("%w: %d elements", ErrRange, n)
	case l.kind == blockCyclic && (l.length < 1 || l.length > longestBlock):
		return fmt.Errorf("%w: blocks of %d elements, needed from 1 to %d", ErrRange, l.length, longestBlock)
	case l.kind != irregular:
		return nil
	}
	if len(*l.counts) != p {
		return fmt.Errorf("%w: a layout of %d ranges for a team of %d", ErrRange, len(*l.counts), p)
	}
	rest := n
	for r, c := range *l.counts {
		if c < 0 || c > rest {
			return fmt.Errorf("%w: a layout of %d elements gives %d to rank %d, when %d are left", ErrRange, n, c, r, rest)
		}
		rest -= c
	}
	if rest != 0 {
		return fmt.Errorf("%w: a layout of %d elements for an array of %d", ErrRange, n-rest, n)
	}
	return nil
}

// dist is a layout of n elements over p ranks: pure index mathematics. Every layout but the irregular one deals out
// blocks: a cyclic one of length 1, a block one with a block or none for each rank, the first large of them longer by
// one element.
type dist struct {
	Layout
	n, p   int
	small  int   // n / p: what the ranks with fewer elements own, in a block layout
	large  int   // how many ranks, the first ones, own one more
	edge   int   // the first element that is not theirs
	starts []int // of an irregular layout: by rank, the first element; then n
}

// newDist makes a layout that was checked.
func newDist(l Layout, n, p int) dist {
	d := dist{Layout: l, n: n, p: p, small: n / p, large: n % p}
	d.edge = d.large * (d.small + 1)
	switch l.kind {
	case cyclic:
		d.length = 1
	case irregular:
		d.starts = make([]int, p+1)
		for r, c := range *l.counts {
			d.starts[r+1] = d.starts[r] + c
		}
	}
	return d
}

// dealt reports whether blocks of a fixed length go to the ranks in turn.
func (d dist) dealt() bool { return d.kind == cyclic || d.kind == blockCyclic }

// same reports whether every element lies at the same place of the same rank.
func (d dist) same(o dist) bool {
	return d.kind == o.kind && d.n == o.n && d.p == o.p && d.length == o.length && slices.Equal(d.starts, o.starts)
}

// owner returns the rank of element i and its place in that rank's part.
func (d dist) owner(i int) (rank, disp int) {
	switch d.kind {
	case cyclic:
		return i % d.p, i / d.p
	case blockCyclic:
		k := i / d.length
		return k % d.p, k/d.p*d.length + i%d.length
	case irregular:
		// The first rank whose range ends behind i: those without elements are passed over.
		rank = sort.Search(d.p, func(r int) bool { return d.starts[r+1] > i })
		return rank, i - d.starts[rank]
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
	switch {
	case d.kind == irregular:
		return d.starts[rank+1] - d.starts[rank]
	case d.dealt():
		whole := d.n / d.length // blocks
		c := whole / d.p * d.length
		switch {
		case rank < whole%d.p:
			c += d.length
		case rank == whole%d.p:
			c += d.n % d.length
		}
		return c
	case rank < d.large:
		return d.small + 1
	}
	return d.small
}

// most returns the largest count.
func (d dist) most() int {
	if d.kind != irregular {
		return d.count(0)
	}
	return slices.Max(*d.counts)
}

// index is the inverse of owner.
func (d dist) index(rank, disp int) int {
	if d.dealt() {
		return (disp/d.length*d.p+rank)*d.length + disp%d.length
	}
	return d.first(rank) + disp
}

// first returns the first element that rank owns; for a rank that owns none it is n or, in a layout of one range for
// each rank, where its range would begin.
func (d dist) first(rank int) int {
	switch {
	case d.kind == irregular:
		return d.starts[rank]
	case d.dealt():
		return min(rank*d.length, d.n)
	}
	return rank*d.small + min(rank, d.large)
}

// run returns how many elements from i on lie one after the other in i's owner's part.
func (d dist) run(i int) int {
	if d.dealt() {
		if d.p == 1 {
			return d.n - i
		}
		return min(d.length-i%d.length, d.n-i)
	}
	rank, disp := d.owner(i)
	return d.count(rank) - disp
}

// existing panics unless a team of p has this member.
func existing(member, p int) {
	if uint(member) >= uint(p) {
		// bug: an index out of range, as with a slice
		panic(fmt.Errorf("%w: member %d of a team of %d", ErrRange, member, p))
	}
}

// check verifies a range of elements.
func (d dist) check(lo, n int) error {
	switch {
	case lo > math.MaxInt-max(n, 0): // their end is beyond all numbers
		return fmt.Errorf("%w: %d elements from %d on, of an array of %d", ErrRange, n, lo, d.n)
	case lo < 0 || n < 0 || lo > d.n-n:
		return fmt.Errorf("%w: elements [%d, %d) of an array of %d", ErrRange, lo, lo+n, d.n)
	}
	return nil
}
