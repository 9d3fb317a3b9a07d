package proto

import (
	"time"

	"gopgas/firehose"
	"gopgas/internal/cost"
	"gopgas/regmgr"
)

// learn finds out what a miss costs here, once, before the first memory that is registered in buckets is used: the size of
// buckets is chosen by it. Registrations of this rank stand for those of the owners, whose machines are alike. Where they
// cannot be measured, because nothing may be registered now, all buckets keep the smallest size.
func (h *hoses) learn() {
	h.n.mu.Lock()
	known := h.known
	h.known = true
	h.n.mu.Unlock()
	if known {
		return
	}
	m, err := h.n.model()
	if err != nil {
		return
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.costs = costsOf(m)
	h.holder.SetCosts(h.costs)
}

// model is what registrations cost with this NIC: as somebody has told, or as measured.
func (n *nic) model() (cost.Model, error) {
	switch {
	case n.direct.costs.PageBytes != 0:
		return n.direct.costs, nil
	case n.e.Sched.Virtual():
		return cost.Named("helper-threads")
	}
	return regmgr.Calibrate(n.d, n.e.Sched)
}

// costsOf are the costs of buckets by a model of registrations. As long as no move was timed it is taken to be as long as a
// registration.
func costsOf(m cost.Model) firehose.Costs {
	c := firehose.Costs{
		Register:     m.Register.B + m.Deregister.B,
		RegisterByte: (m.Register.A + m.Deregister.A) / float64(m.PageBytes),
	}
	c.RoundTrip = c.Register
	return c
}

// timedLocked takes in how long a miss of so many bytes in so many buckets took: the shortest is the round trip and what
// the owner's registrations cost.
func (h *hoses) timedLocked(took time.Duration, run firehose.Run) {
	if h.costs == (firehose.Costs{}) {
		return
	}
	bytes := float64(run.Weight() << h.budget.Shift)
	trip := float64(took) - float64(run.Count)*h.costs.Register - bytes*h.costs.RegisterByte
	if trip = max(trip, float64(took)/4); h.trip == 0 || trip < h.trip {
		h.trip, h.costs.RoundTrip = trip, trip
		h.holder.SetCosts(h.costs)
	}
}
