package selector

import "math/bits"

// Sure is for which sizes it is sure how transfers of some kind travel: a bit for each power of two, for the sizes from there up to the next.
type Sure uint64

// Has reports whether a size in bytes is one of them; nothing at all is not.
func (s Sure) Has(bytes int) bool { return s<<1>>bits.Len(uint(bytes))&1 != 0 }

// Sizes that are looked at, as powers of two, and how many times as long another way must take.
const (
	sureLeast = 10 // 1 KiB
	sureMost  = 26 // 64 MiB
	sureMore  = 1.25
)

// Surely returns for which sizes transfers like q go direct, if their memory is registered at both ends, whatever may still be learned: any other
// protocol is estimated to take far longer, by more than estimates are wrong. It takes some tens of microseconds.
func (s *Selector) Surely(q Query) (sizes Sure) {
	q.Covered = true
	more := sureMore
	if !q.Get && !q.Waited {
		more = 1 // what the wire takes comes on top of any other way, and is waited for later
	}
	below := false
	for c := sureLeast; c <= sureMost; c++ {
		q.Bytes = 1 << c
		direct, rest := s.Cost(Direct, q), true
		for p := Inline; p < Protocols; p++ {
			rest = rest && (p == Direct || s.Cost(p, q) >= more*direct)
		}
		if below && rest {
			sizes |= 1 << (c - 1)
		}
		below = rest
	}
	return sizes
}
