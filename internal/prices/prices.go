package prices

import (
	"gopgas/eager"
	"gopgas/internal/selector"
	"gopgas/internal/superpipe"
)

// Prices are what choices are made by; New makes them. They do not change, but for what Learned learns.
type Prices struct {
	Selector *selector.Selector
	learned  *learned
	Small    [3]eager.Costs // of puts, of gets, of messages with a payload; nil: not measured
	Measured bool
	Abroad   bool  // and transfers with another rank, too
	Why      error // nothing was measured, or nothing of what is small

	sure *sure // nil: nothing is
}

// Costs in seconds that are not measured.
const (
	assumedHandler = 2e-6 // of an active message at its target
	assumedLookup  = 60e-9
	nanosecond     = 1e-9
)

// Published returns the prices of a machine of which nothing has been measured, and of one in virtual time, which is no more than its
// constants: those of A. Denis, Euro-Par 2011, or derived from them. Gap and copies in the caches are assumed. Of m only what is known
// without measuring is looked at.
func Published(m selector.Machine) *Prices {
	m = costing(m, superpipe.Model{
		Gap: 0.2e-6, Latency: 1.2e-6, Net: 2e9, RegLatency: 68e-6, Reg: 4096 / 200e-9,
		Copy: func(bytes float64) float64 {
			if bytes <= 32<<10 {
				return 8e9
			}
			return 5.2e9
		},
	}, assumedLookup)
	return New(m.Selector(0)).sureByCosts()
}

// costing is a machine with a model of its costs, and those of a lookup in the registration cache.
func costing(m selector.Machine, costs superpipe.Model, lookup float64) selector.Machine {
	m.Model, m.Post, m.Lookup, m.Handler = costs, costs.Gap, lookup, assumedHandler
	return m
}

// Because returns p with the reason why nothing better is known.
func (p *Prices) Because(why error) *Prices {
	q := *p
	q.Why = why
	return &q
}
