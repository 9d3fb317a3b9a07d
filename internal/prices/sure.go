package prices

import (
	"math/bits"
	"sync/atomic"

	"gopgas/eager"
	"gopgas/internal/selector"
)

// Kind is which transfers differ in when it is sure how they travel.
type Kind uint8

// The kinds.
const (
	Get Kind = iota
	PutWaited
	Put
	kinds
)

// sure is of what sizes transfers of memory that is registered at both ends go direct without being asked about: nothing that was measured says that
// another way, which copies besides, takes less, and out of the cold asking costs more than what it could win. Some are asked about all the same; where
// what transfers of a size have really cost speaks against it, it is sure of that size no longer.
type sure struct {
	left [kinds][sureSizes]atomic.Uint32 // by size, as a power of two: how many answers one after the other may still be another way; 0: it is not sure
}

// sureSizes is how many powers of two there are of which anything is sure.
const sureSizes = 32

// mostDoubts is how many such answers are no trial of another way, of which two are never made one after the other.
const mostDoubts = 3

// of is what is sure of so many bytes; nil: nothing ever.
func (s *sure) of(k Kind, bytes int) *atomic.Uint32 {
	power := bits.Len(uint(bytes)) - 1
	if s == nil || uint(power) >= sureSizes {
		return nil
	}
	return &s.left[k][power]
}

// From returns the prices of a machine that was measured.
func From(m selector.Machine, small [3]eager.Costs) *Prices {
	p := New(m.Selector(0))
	p.Small, p.Measured = small, true
	return p.sureByCosts()
}

// sureByCosts makes prices, which are new, sure of what their costs say.
func (p *Prices) sureByCosts() *Prices {
	p.sure = new(sure)
	for k, sizes := range [kinds]selector.Sure{
		Get:       p.Selector.Surely(selector.Query{Get: true}),
		PutWaited: p.Selector.Surely(selector.Query{Waited: true}),
		Put:       p.Selector.Surely(selector.Query{}),
	} {
		for power := range sureSizes {
			if sizes.Has(1 << power) {
				p.sure.left[k][power].Store(mostDoubts)
			}
		}
	}
	return p
}

// Surely reports whether transfers of so many bytes, of memory that is registered at both ends, go direct whatever is learned.
func (p *Prices) Surely(k Kind, bytes int) bool {
	left := p.sure.of(k, bytes)
	return left != nil && left.Load() > 0
}

// Asked notes what was chosen for one of those transfers that was asked about. What goes as those of its run do is no choice.
func (p *Prices) Asked(k Kind, bytes int, direct bool) {
	left := p.sure.of(k, bytes)
	if left == nil {
		return
	}
	switch now := left.Load(); {
	case now == 0:
	case !direct:
		left.CompareAndSwap(now, now-1)
	case now < mostDoubts:
		left.CompareAndSwap(now, mostDoubts)
	}
}
