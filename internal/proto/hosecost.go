package proto

import (
	"fmt"
	"math/bits"
	"time"

	"gopgas/firehose"
	"gopgas/internal/cost"
	"gopgas/regmgr"
	"gopgas/transport"
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

// FixBuckets has this rank ask for buckets of so many bytes, a power of two, in all memory that it reaches through buckets for the
// first time from now on, instead of what suits its accesses; 0 ends that. It is for measurements. The error says that there
// are no buckets, or none so small or large.
func (e *Engine) FixBuckets(bytes int64) error {
	n := e.nic()
	if n == nil || n.hoses == nil {
		return fmt.Errorf("fix the size of buckets: %w: no NIC here registers memory in buckets; bound what it may register (PGAS_MAX_PINNED)",
			transport.ErrUnsupported)
	}
	h := n.hoses
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.fixed = 0; bytes == 0 {
		return nil
	}
	order := bits.Len64(uint64(bytes)) - 1 - int(h.budget.Shift)
	if bytes&(bytes-1) != 0 || order < 0 || order > int(h.budget.MaxOrder()) {
		return fmt.Errorf("fix the size of buckets: %d bytes: found room for powers of two from %d to %d here (PGAS_MAX_PINNED)",
			bytes, h.budget.Unit(), h.budget.Unit()<<h.budget.MaxOrder())
	}
	h.fixed = order + 1
	return nil
}
