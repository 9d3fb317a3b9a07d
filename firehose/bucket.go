package firehose

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// How a Bucket is packed. A range may hold 2^39 buckets of the smallest size, and a rank 2^20 ranges at once.
const (
	indexBits = 39
	orderBits = 5
	rangeBits = 20

	indexMask = 1<<indexBits - 1
	mostOrder = 1<<orderBits - 1
)

// maxRange is the largest ID of a Range.
const maxRange = 1<<rangeBits - 1

// Bucket names a bucket of one owner: a range, an order (the bucket is 2^order units long) and an index. Buckets of
// different orders are different buckets even where they cover the same bytes: each is registered and charged by
// itself, as NICs do. That is why every origin may choose the size that suits its own accesses.
type Bucket uint64

// MakeBucket packs a bucket's name.
func MakeBucket(id uint32, order uint8, index uint64) Bucket {
	return Bucket(uint64(id)<<(indexBits+orderBits) | uint64(order)<<indexBits | index)
}

// Range returns the ID of the range that the bucket is part of.
func (b Bucket) Range() uint32 { return uint32(b >> (indexBits + orderBits)) }

// Order returns the binary logarithm of the bucket's size in units.
func (b Bucket) Order() uint8 { return uint8(b>>indexBits) & mostOrder }

// Index returns the bucket's place in its range, counted in buckets of its order.
func (b Bucket) Index() uint64 { return uint64(b) & indexMask }

// Weight returns what the bucket is charged, in units.
func (b Bucket) Weight() int64 { return 1 << b.Order() }

func (b Bucket) String() string {
	return fmt.Sprintf("%d of order %d in range %d", b.Index(), b.Order(), b.Range())
}

// Run is Count neighbouring buckets of one range and order.
type Run struct {
	First Bucket
	Count uint32
}

// Weight returns what the run is charged, in units.
func (r Run) Weight() int64 { return int64(r.Count) * r.First.Weight() }

// At returns the i-th bucket of the run.
func (r Run) At(i uint32) Bucket { return r.First + Bucket(i) }

// contains reports whether b is one of the run's buckets.
func (r Run) contains(b Bucket) bool { return b >= r.First && b-r.First < Bucket(r.Count) }

// Range is memory that a rank exposes. Start is where its first byte lies, in bytes: buckets end on multiples of their size, counted
// from zero. It may be the byte's address at the owner, or the place of that in its page, which has the buckets begin with the memory's first
// page; two of them never share a page either way. Every rank describes a range alike.
type Range struct {
	ID    uint32
	Start uint64
	Bytes uint64
}

// ErrRange: bytes or buckets that no range has.
var ErrRange = errors.New("outside of the exposed memory")

// check returns an error for a range that cannot be divided into buckets of 2^shift bytes.
func (r Range) check(shift uint8) error {
	end := r.Start + r.Bytes - 1
	switch {
	case r.ID > maxRange:
		return fmt.Errorf("%w: range %d, at most %d", ErrRange, r.ID, maxRange)
	case r.Bytes == 0, end < r.Start, r.Bytes >= 1<<62:
		return fmt.Errorf("%w: %d bytes at %#x are no range", ErrRange, r.Bytes, r.Start)
	case end>>shift-r.Start>>shift > indexMask:
		return fmt.Errorf("%w: %d bytes are more than %d buckets of %d bytes", ErrRange, r.Bytes, uint64(indexMask), uint64(1)<<shift)
	}
	return nil
}

// holds reports whether n bytes at off lie in the range.
func (r Range) holds(off, n uint64) bool { return off <= r.Bytes && n <= r.Bytes-off }

// skew is how far into a bucket of 2^shift bytes the range begins.
func (r Range) skew(shift uint8) uint64 { return r.Start & (1<<shift - 1) }

// Run returns the buckets that n bytes at off touch, where shift is the binary logarithm of a unit's bytes. Both ends
// are rounded outward from the bytes themselves. No bytes touch no bucket. The caller has checked the bounds.
func (r Range) Run(shift, order uint8, off, n uint64) Run {
	if n == 0 {
		return Run{First: MakeBucket(r.ID, order, 0)}
	}
	shift += order
	from := r.skew(shift) + off
	lo, hi := from>>shift, (from+n-1)>>shift
	return Run{First: MakeBucket(r.ID, order, lo), Count: uint32(min(hi-lo+1, 1<<31))}
}

// Extent returns the bytes of the range that lie in bucket b: those are what is registered.
func (r Range) Extent(shift uint8, b Bucket) (off, n uint64) {
	shift += b.Order()
	skew := r.skew(shift)
	lo, hi := b.Index()<<shift, (b.Index()+1)<<shift
	lo = max(lo, skew) - skew
	return lo, min(hi-skew, r.Bytes) - lo
}

// Piece returns how many of the n bytes at off may be asked for at once where a request may have at most most
// buckets. All pieces but the last end where a bucket does, so that no bucket belongs to two of them.
func (r Range) Piece(shift, order uint8, off, n uint64, most uint32) uint64 {
	run := r.Run(shift, order, off, n)
	if run.Count <= most {
		return n
	}
	end, size := r.Extent(shift, run.At(most-1))
	return end + size - off
}

// has reports whether the buckets of run exist in the range.
func (r Range) has(shift uint8, run Run) bool {
	shift += run.First.Order()
	if run.Count == 0 || run.First.Range() != r.ID || shift > 62 {
		return false
	}
	last := (r.skew(shift) + r.Bytes - 1) >> shift
	return run.First.Index() <= last && uint64(run.Count)-1 <= last-run.First.Index()
}

// coalesce appends the buckets to runs, neighbours together. It sorts the buckets.
func coalesce(runs []Run, buckets []Bucket) []Run {
	slices.Sort(buckets)
	for _, b := range buckets {
		runs = extend(runs, b)
	}
	return runs
}

// extend appends b, to the last run if it is its neighbour.
func extend(runs []Run, b Bucket) []Run {
	if k := len(runs) - 1; k >= 0 && runs[k].At(runs[k].Count) == b && b.Index() != 0 {
		runs[k].Count++
		return runs
	}
	return append(runs, Run{First: b, Count: 1})
}

// weigh returns what runs are charged, in units.
func weigh(runs []Run) (units int64) {
	for _, r := range runs {
		units += r.Weight()
	}
	return units
}

// log2 returns the binary logarithm of a power of two.
func log2(n int64) uint8 { return uint8(bits.Len64(uint64(n)) - 1) }
