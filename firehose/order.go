package firehose

import (
	"math"
	"math/bits"
)

// Costs are what a miss is made of, in nanoseconds. They come from the cost model of the NIC in use.
type Costs struct {
	RoundTrip    float64 // of a move, without registration
	Register     float64 // one registration and its end, whatever its size
	RegisterByte float64 // each byte of it
	Operation    float64 // one more operation, since a use goes on in the next bucket
}

// Usage is how one range is used through the firehoses of one origin.
type Usage struct {
	Stretch int64   // mean bytes of neighbouring memory that are used together
	Places  int64   // how many such stretches are in use by turns
	Reuse   float64 // how often a place is used before others take its turn; at least 1
	Bytes   int64   // mean bytes of one use, as its caller made it; 0: not known
	Cuts    float64 // into how many more operations than one a use was cut, at the ends of buckets of the order At
	At      uint8
}

// Order returns the order of the buckets with the least cost per use of a stretch, and that cost in nanoseconds.
//
// A stretch of t bytes touches t/S buckets of S bytes and, since it begins anywhere, on average one more. Each costs a
// registration and pays for all its bytes, used or not; a move of them all, one round trip for each most buckets. So
// large stretches want large buckets and scattered ones small; where nothing else counts the best S is the root
// of t·Register/RegisterByte. What is held is used Reuse times for one miss, but only as long as all Places fit into
// the share: larger buckets waste more of it, and beyond it each use is a miss.
//
// A use across the end of a bucket is an operation more, held or not: of what is used often that counts for more than the misses. The ends of
// larger buckets are among those of smaller ones, so uses that were not cut will not be; of others half as many for twice the size.
//
// Of the buckets chosen at least four fit into the share, if that holds four units: several transfers, or the pieces of
// one, want buckets at a time.
func (b Budget) Order(u Usage, c Costs, most int) (order uint8, cost float64) {
	for o := range b.MaxOrder() + 1 {
		if o > 0 && b.Share>>o < leastBuckets {
			break
		}
		if k := b.orderCost(u, c, most, o); o == 0 || k < cost {
			order, cost = o, k
		}
	}
	return order, cost
}

// leastBuckets is how many buckets a share should hold.
const leastBuckets = 4

// orderCost is the cost of one use of a stretch with buckets of order o.
func (b Budget) orderCost(u Usage, c Costs, most int, o uint8) float64 {
	size := float64(int64(1) << (b.Shift + o))
	buckets := float64(max(1, u.Stretch)-1)/size + 1
	moves := max(1, buckets/float64(max(1, min(int64(most), b.Share>>o))))
	miss := moves*c.RoundTrip + buckets*(c.Register+c.RegisterByte*size)
	more := u.cuts(b.Shift, o) * c.Operation
	if float64(max(1, u.Places))*buckets <= float64(b.Share>>o) {
		return miss/max(1, u.Reuse) + more
	}
	return miss + more
}

// cuts returns into how many operations more than one each of the uses of a stretch will be cut by buckets of order o, together.
func (u Usage) cuts(shift, o uint8) float64 {
	if u.Bytes == 0 {
		return 0
	}
	each := u.Cuts * math.Ldexp(1, int(u.At)-int(o))
	if o < u.At {
		each = max(each, math.Ldexp(float64(u.Bytes), -int(shift+o))-1) // where they may lie as well as they can
	}
	return each * max(1, float64(u.Stretch)/float64(u.Bytes))
}

// gain is how much cheaper another order must be before it is taken: what is held in the old one is lost.
const gain = 0.8

// period is how many misses a meter watches before it says something.
const period = 64

// meter watches how one range is used. A hit on one bucket costs it two additions.
type meter struct {
	bytes   uint64    // used by all requests
	uses    uint64    // requests, those for the rest of one that was cut among them
	cuts    uint64    // of uses, at the ends of buckets
	covered uint64    // of these, by the misses and what lies between those of one stretch
	misses  uint32    // since the last verdict, as all of this
	chains  uint32    // misses that do not continue the one before: stretches
	last    uint64    // where the last miss ended
	seen    [4]uint64 // places of the stretches, hashed: how many bits are set tells how many there are
}

// use notes a request of n bytes in so many buckets.
func (m *meter) use(n uint64, buckets uint32) {
	m.bytes += n
	m.uses += uint64(buckets)
	m.cuts += uint64(buckets) - 1
}

// miss notes a request of n bytes at off that missed, and reports whether it is time for a verdict. A miss that begins
// within a bucket of where the last one ended continues its stretch: what lay between were hits.
func (m *meter) miss(off, n, bucket uint64) bool {
	m.misses++
	if m.chains > 0 && off <= m.last+bucket && m.last <= off+bucket {
		m.covered += max(off+n, m.last) - m.last
	} else {
		m.chains++
		m.covered += n
		h := off / bucket * spread >> 56
		m.seen[h>>6] |= 1 << (h & 63)
	}
	m.last = off + n
	return m.misses >= period
}

// verdict returns what was seen since the last one, with buckets of an order, and forgets it.
func (m *meter) verdict(order uint8) Usage {
	whole := max(1, m.uses-min(m.uses, m.cuts)) // requests as their callers made them
	u := Usage{
		Bytes: int64(m.bytes / whole), Cuts: float64(m.cuts) / float64(whole), At: order,
		Stretch: int64(m.covered / uint64(max(1, m.chains))),
		Reuse:   float64(m.bytes) / float64(max(1, m.covered)),
	}
	for _, w := range m.seen {
		u.Places += int64(bits.OnesCount64(w))
	}
	*m = meter{}
	return u
}
