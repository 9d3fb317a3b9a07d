package selector

import "math/bits"

// Sure is for which sizes it is sure how transfers of some kind travel: a bit for each power of two, for the sizes from there up to the next.
type Sure uint64

// Has reports whether a size in bytes is one of them; nothing at all is not.
func (s Sure) Has(bytes int) bool { return s<<1>>bits.Len(uint(bytes))&1 != 0 }

// Sizes of which estimates are looked at, as powers of two.
const (
	sureLeast = 10 // 1 KiB
	sureMost  = 26 // 64 MiB
)

// Surely returns for which sizes transfers like q go direct, if their memory is registered at both ends, whatever is estimated: all of those that
// somebody waits for to their end, since any other protocol moves the same bytes over the same wire and copies them besides. A put that nobody waits for
// must be estimated to return no later than by any other; that takes some tens of microseconds.
func (s *Selector) Surely(q Query) (sizes Sure) {
	if q.Get || q.Waited {
		return ^Sure(0)
	}
	q.Covered = true
	below := false
	for c := sureLeast; c <= sureMost; c++ {
		q.Bytes = 1 << c
		direct, rest := s.Cost(Direct, q), true
		for p := Inline; p < Protocols; p++ {
			rest = rest && (p == Direct || s.Cost(p, q) >= direct)
		}
		if below && rest {
			sizes |= 1 << (c - 1)
		}
		below = rest
	}
	return sizes
}
