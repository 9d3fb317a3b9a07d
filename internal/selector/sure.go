package selector

import "math/bits"

// Sure is for which sizes it is sure how transfers of some kind travel: a bit for each power of two, for the sizes from there up to the next.
type Sure uint64

// Has reports whether a size in bytes is one of them; nothing at all is not.
func (s Sure) Has(bytes int) bool { return s<<1>>bits.Len(uint(bytes))&1 != 0 }

// Sizes that are looked at, as powers of two, and how many times as long another way must take.
const (
	sureLeast = 10 // 1 KiB
	sureMost  = 26 // 64 MiB, of estimates
	sureMore  = 1.25
)

// Surely returns for which sizes transfers like q go direct, if their memory is registered at both ends, whatever is estimated: all of those that
// somebody waits for to their end, since any other protocol moves the same bytes over the same wire and copies them besides. A put that nobody waits for
// must be estimated to return no later than by any other, and any other to take far longer with its part of the flush, by more than estimates are wrong:
// what returns early has its wire beside that of those behind it, which is learned and not estimated. That takes some tens of microseconds.
func (s *Selector) Surely(q Query) (sizes Sure) {
	if q.Get || q.Waited {
		return ^Sure(1<<sureLeast - 1)
	}
	q.Covered = true
	below := false
	for c := sureLeast; c <= sureMost; c++ {
		q.Bytes = 1 << c
		direct, lasting, rest := s.Cost(Direct, q), s.Lasting(Direct, q), true
		for p := Inline; p < Protocols; p++ {
			rest = rest && (p == Direct || s.Cost(p, q) >= direct && s.Lasting(p, q) >= sureMore*lasting)
		}
		if below && rest {
			sizes |= 1 << (c - 1)
		}
		below = rest
	}
	return sizes
}

// Sure reports whether transfers like q, of memory that is registered at both ends, go direct by what has been learned: that has been noted often enough to
// be believed, and whatever else can carry them was noted to take far longer, or is estimated to.
func (l *Learned) Sure(q Query) bool { return l.kinds[kindOf(&q, true)].sure.Load() }

// isSure is what Sure says of such prices, of memory that is known: the first of them is that of going direct.
func isSure(prices *[arms]price, best int) bool {
	direct := &prices[0]
	if best != 0 || direct.noted < trials {
		return false
	}
	for _, p := range prices[1:] {
		if p.seconds < sureMore*direct.seconds {
			return false
		}
	}
	return true
}
