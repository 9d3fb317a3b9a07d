package hose

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"

	"gopgas/firehose"
	"gopgas/internal/cost"
)

// learn finds out what a miss costs here, once, before the first memory that is registered in buckets is used: the size of
// buckets is chosen by it. Registrations of this rank stand for those of the owners, whose machines are alike. Where they
// cannot be measured, because nothing may be registered now, all buckets keep the smallest size.
func (h *Set) learn() {
	h.lock.Lock()
	known := h.known
	h.known = true
	h.lock.Unlock()
	if known {
		return
	}
	m, err := h.nic.Model()
	if err != nil {
		return
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.costs = costsOf(m)
	h.holder.SetCosts(h.costs)
}

// operation is what one more operation is taken to cost, in nanoseconds, where that was not measured.
const operation = 500

// costsOf are the costs of buckets by a model of registrations. As long as no move was timed it is taken to be as long as a
// registration.
func costsOf(m cost.Model) firehose.Costs {
	c := firehose.Costs{
		Register:     m.Register.B + m.Deregister.B,
		RegisterByte: (m.Register.A + m.Deregister.A) / float64(m.PageBytes),
		Operation:    cmp.Or(m.Post, operation),
	}
	c.RoundTrip = c.Register
	return c
}

// timedLocked takes in how long a miss of so many bytes in so many buckets took: the shortest is the round trip and what
// the owner's registrations cost.
func (h *Set) timedLocked(took time.Duration, run firehose.Run) {
	if h.costs == (firehose.Costs{}) {
		return
	}
	trip := tripOf(took, run.Count, run.Weight()<<h.budget.Shift, h.costs)
	if h.trip == 0 || trip < h.trip {
		h.trip, h.costs.RoundTrip = trip, trip
		h.holder.SetCosts(h.costs)
	}
}

// tripOf is what is left of a miss, in nanoseconds, without the registrations of its buckets and bytes. It is never less than a
// quarter: the owner may not have had to register.
func tripOf(took time.Duration, buckets uint32, bytes int64, c firehose.Costs) float64 {
	trip := float64(took) - float64(buckets)*c.Register - float64(bytes)*c.RegisterByte
	return max(trip, float64(took)/4)
}

// Fix has this rank ask for buckets of so many bytes, a power of two, in all memory that it reaches through buckets for the
// first time from now on, instead of what suits its accesses; 0 ends that. The error says that there are none so small or
// large.
func (h *Set) Fix(bytes int64) error {
	h.lock.Lock()
	defer h.lock.Unlock()
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
