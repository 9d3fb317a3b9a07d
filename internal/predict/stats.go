package predict

import (
	"slices"
	"sync/atomic"
)

// Stats are counts since the predictor was made.
type Stats struct {
	Uses         uint64 // DQ items handled
	Lost         uint64 // uses that found the DQ full
	Predicted    uint64 // uses for which a prediction had been made
	Within5      uint64 // of those, predicted within 5 % of the observed period
	WithinHalf   uint64 // within 0.5 %
	GaveBack     uint64 // regions given back: after a use, or because one did not come
	Kept         uint64 // uses after which the region stayed
	Registered   uint64 // registrations ahead of a use
	Found        uint64 // registrations that were not needed
	Refused      uint64 // registrations that failed
	Dropped      uint64 // regions that made room under the limit
	Mispredicted uint64 // predicted uses that did not come
	Cancelled    uint64 // RQ items that a use on demand overtook
}

type counts struct {
	uses, predicted, within5, withinHalf                                         atomic.Uint64
	gaveBack, kept, registered, found, refused, dropped, mispredicted, cancelled atomic.Uint64
}

// Stats returns the counts. Any goroutine may call it.
func (p *Predictor) Stats() Stats {
	c := &p.counts
	return Stats{
		Uses: c.uses.Load(), Lost: p.dq.Lost(),
		Predicted: c.predicted.Load(), Within5: c.within5.Load(), WithinHalf: c.withinHalf.Load(),
		GaveBack: c.gaveBack.Load(), Kept: c.kept.Load(), Registered: c.registered.Load(), Found: c.found.Load(),
		Refused: c.refused.Load(), Dropped: c.dropped.Load(), Mispredicted: c.mispredicted.Load(),
		Cancelled: c.cancelled.Load(),
	}
}

// judge compares a prediction with the use that came at that time: its error as a part of the observed period.
func (c *counts) judge(g guess, at Nanos) {
	observed := at - g.from
	if g.to == 0 || observed <= 0 {
		return
	}
	c.predicted.Add(1)
	miss := max(at-g.to, g.to-at)
	if miss*20 <= observed {
		c.within5.Add(1)
	}
	if miss*200 <= observed {
		c.withinHalf.Add(1)
	}
}

// Gap returns the median period of the sites whose next use is predicted: a helper that may act so much later gives back half of
// the regions between two uses (equation 2 is asked for each by itself). 0: there is none. Only the goroutine that calls Step may call it.
func (p *Predictor) Gap() Nanos {
	periods := make([]Nanos, 0, len(p.rq)+len(p.vigil))
	for _, s := range p.rq {
		periods = append(periods, s.due-s.last)
	}
	for _, s := range p.vigil {
		periods = append(periods, s.due-s.last)
	}
	if len(periods) == 0 {
		return 0
	}
	slices.Sort(periods)
	return periods[len(periods)/2]
}
