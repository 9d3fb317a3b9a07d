package regmgr

import (
	"fmt"
	"sync/atomic"
	"time"
)

type counter = atomic.Uint64

// counters count what happened off the fast path; hits are what is left of the references taken.
type counters struct {
	registrations, ahead, deregistrations            counter
	refused, stuck, collections                      counter
	missCold, missPartial, missRights, waits         counter
	released, evicted, collected, ended, freed, shed counter
	joined, joinedCold                               counter
	copyPolicy, copyOrigin, copyBudget, copyRefused  counter
}

// Stats are a rank's counters of registered memory.
type Stats struct {
	Policy    string
	Why       string // this policy: Config.Why
	Threshold int    // bytes from which transfers are registered
	Usage            // bytes charged to the budget; firehose's too (Lent), windows' not
	Idle      int64  // of Bytes, registered without being in use; not what is being given up
	Heap      int64  // of Bytes, on the Go heap
	Hits      uint64 // references taken without a registration

	Registrations, Deregistrations uint64
	Ahead                          uint64 // of the registrations, those made before a use
	// Misses by cause: nothing registered there, a part only, not with these rights.
	MissCold, MissPartial, MissRights uint64
	// Waits are hits that had to wait for another caller's registration or deregistration.
	Waits uint64
	// Deregistrations by cause: after use, for room, after two collections, at a Lifetime's end.
	Released, Evicted, Collected, Ended uint64
	Shed                                uint64 // what others that share the budget gave up for somebody
	// Joined are uses of exposed memory that began with the registration of a bucket, which other ranks use or may, instead of one of their own:
	// no Registrations and no Deregistrations.
	Joined uint64
	// Transfers copied though they asked for registered memory, by cause: the policy, memory that must not be registered,
	// a full budget, the NIC.
	CopiedPolicy, CopiedOrigin, CopiedBudget, CopiedRefused uint64
	// Refused are registrations that the NIC refused, Stuck those that it would not end.
	Refused, Stuck uint64
	Prediction     Prediction
}

// Prediction is how well uses were foreseen; all zero unless the policy is Predictive.
type Prediction struct {
	Made, Within05, Within5 uint64        // predictions, those within 0.5 % and within 5 % of the period
	Missed                  uint64        // uses that never came
	Late                    uint64        // predicted uses that came before their registration: it was made on demand
	LostDQ                  uint64        // entries lost to a full queue of deregistrations
	Poll                    time.Duration // X: how late the helper may hear of a use
	Helper                  bool          // a helper is at work: it runs, and has a core
}

// Stats returns the counters.
func (m *Manager) Stats() Stats {
	c := &m.counts
	s := Stats{
		Policy: m.cfg.Policy.String(), Why: m.cfg.Why, Threshold: m.cfg.Threshold, Usage: m.budget.Usage(),
		Registrations: c.registrations.Load(), Ahead: c.ahead.Load(), Deregistrations: c.deregistrations.Load(),
		MissCold: c.missCold.Load(), MissPartial: c.missPartial.Load(), MissRights: c.missRights.Load(), Waits: c.waits.Load(),
		Released: c.released.Load(), Evicted: c.evicted.Load(), Collected: c.collected.Load(), Ended: c.ended.Load(), Shed: c.shed.Load(), Joined: c.joined.Load(),
		CopiedPolicy: c.copyPolicy.Load(), CopiedOrigin: c.copyOrigin.Load(), CopiedBudget: c.copyBudget.Load(),
		CopiedRefused: c.copyRefused.Load(), Refused: c.refused.Load(), Stuck: c.stuck.Load(),
	}
	if m.ahead != nil {
		s.Prediction = m.ahead.prediction()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Heap = m.heapBytes
	held := 0
	for _, r := range m.idle.heap {
		held += r.references()
		if r.references() == 0 {
			s.Idle += int64(r.pages) * int64(m.page)
		}
	}
	if u, missed := m.taken(held), s.Registrations-s.Ahead+c.joinedCold.Load(); u > missed {
		s.Hits = u - missed
	}
	return s
}

// Refusal returns the first registration or deregistration that was refused, with what was found and the cure, and why the
// helper has ended by itself, or nil. Later refusals are only counted.
func (m *Manager) Refusal() error {
	m.mu.Lock()
	refused := m.refusal
	m.mu.Unlock()
	if m.ahead == nil {
		return refused
	}
	switch ended := m.ahead.helper.Err(); {
	case ended == nil:
		return refused
	case refused == nil:
		return ended
	default:
		return fmt.Errorf("%w; %w", refused, ended)
	}
}
