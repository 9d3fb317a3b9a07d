package prices

import (
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
// what transfers have really cost speaks against it, it is sure no longer.
type sure struct {
	sizes  [kinds]selector.Sure
	doubts [kinds]atomic.Uint32 // answers one after the other that were not to go direct
}

// mostDoubts is how many such answers are no trial of another way, of which two are never made one after the other.
const mostDoubts = 3

// From returns the prices of a machine that was measured.
func From(m selector.Machine, small [3]eager.Costs) *Prices {
	p := New(m.Selector(0))
	p.Small, p.Measured = small, true
	return p.sureByCosts()
}

// sureByCosts makes prices, which are new, sure of what their costs say.
func (p *Prices) sureByCosts() *Prices {
	p.sure = &sure{sizes: [kinds]selector.Sure{
		Get:       p.Selector.Surely(selector.Query{Get: true}),
		PutWaited: p.Selector.Surely(selector.Query{Waited: true}),
		Put:       p.Selector.Surely(selector.Query{}),
	}}
	return p
}

// Surely reports whether transfers of so many bytes, of memory that is registered at both ends, go direct whatever is learned.
func (p *Prices) Surely(k Kind, bytes int) bool {
	s := p.sure
	return s != nil && s.sizes[k].Has(bytes) && s.doubts[k].Load() < mostDoubts
}

// Asked notes what the answer was for one of those transfers that was asked about.
func (p *Prices) Asked(k Kind, direct bool) {
	s := p.sure
	switch {
	case s == nil || s.doubts[k].Load() >= mostDoubts:
	case direct:
		s.doubts[k].Store(0)
	default:
		s.doubts[k].Add(1)
	}
}
