package proto

import (
	"gopgas/eager"
	"gopgas/internal/nic"
	"gopgas/internal/prices"
)

// Memory is what the NIC path of one rank takes, in bytes.
type Memory struct {
	Slots, Scratch, Messages, Pipes int // registered while the NIC is open
	Rings                           int // of the NIC's queues, when all are connected; 0: none that counts against the limit
	Leases                          int // registered when others first put to memory that is not
	Measuring                       int // registered for the tenths of a second that measuring takes
	Beside                          int // taken for as long, and not registered
}

// ringed are NICs whose queues lie in memory that counts against the limit of locked memory, as registrations do: verbs.
type ringed interface {
	// Rings returns how many bytes they take in a world of so many ranks, about, when each is connected with each.
	Rings(ranks int) int64
}

// Memory returns what the NIC in use takes of a rank in a world of so many ranks; zero without one.
func (e *Engine) Memory(ranks int) (m Memory) {
	n := e.nic()
	if n == nil {
		return m
	}
	if q, ok := n.Domain.(ringed); ok {
		m.Rings = int(q.Rings(ranks))
	}
	return Memory{
		Rings: m.Rings,
		Slots: n.Slots * n.Slot, Scratch: nic.Pieces * nic.ScratchBytes, Messages: n.MessageBytes(ranks), Pipes: n.flights.Footprint(),
		Leases: n.flights.Workspace(), Measuring: 4 * n.gaugeBytes(), // both ends, one of them once more as a transfer registers it, and as much that is in no cache
		Beside: eager.MeasureBytes + prices.ColdMost,
	}
}
