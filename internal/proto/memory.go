package proto

import "gopgas/internal/nic"

// Memory is what the NIC path of one rank takes, in bytes.
type Memory struct {
	Slots, Scratch, Messages, Pipes int // registered while the NIC is open
	Leases                          int // registered when others first put to memory that is not
	Measuring                       int // registered for the up to a hundred milliseconds that measuring takes
}

// Memory returns what the NIC in use takes of a rank in a world of so many ranks; zero without one.
func (e *Engine) Memory(ranks int) (m Memory) {
	n := e.nic()
	if n == nil {
		return m
	}
	return Memory{
		Slots: n.Slots * n.Slot, Scratch: nic.Pieces * nic.ScratchBytes, Messages: n.MessageBytes(ranks), Pipes: n.flights.Footprint(),
		Leases: n.flights.Workspace(), Measuring: 3 * n.gaugeBytes(), // both ends, and one of them once more as a transfer registers it
	}
}
