package nic

import (
	"fmt"
	"os"

	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// slotsFor is how many slots of so many bytes a pool has where nobody says: fewer where the NIC may pin little (0: there is no limit), since
// all of them together are to be a small part of that.
func slotsFor(most int64, bytes int) int {
	if most <= 0 {
		return slots
	}
	return max(slotsLeast, min(slots, int(most/slotsShare)/bytes))
}

// ownBuffers is the registered memory that a NIC takes when it is opened, bytes, whatever the program does: scratch memory, slots and
// the buffers of messages, each in whole pages.
func (n *NIC) ownBuffers() int {
	page := os.Getpagesize()
	sum := 0
	for _, bytes := range [...]int{Pieces * ScratchBytes, n.Slots * SlotBytes, n.MessageBytes(len(n.ends))} {
		sum += (bytes + page - 1) / page * page
	}
	return sum
}

// MessageBytes is what the buffers of messages take in a world of so many ranks, without those that Listen is asked for.
func (n *NIC) MessageBytes(ranks int) int {
	if !n.Caps.Sends || n.Caps.MaxMessage < am.LeastMessage {
		return 0
	}
	return am.Bytes(n.Caps, ranks, 0)
}

// afford returns a *transport.LimitError, with the sum of what is needed, where the NIC may not register all of that: each buffer would
// else be refused by itself, one after the other as the limit is raised.
func (n *NIC) afford() error {
	need := int64(n.ownBuffers())
	if n.Caps.MaxPinned <= 0 || n.Caps.MaxPinned >= need {
		return nil
	}
	const mib = 1 << 20
	return &transport.LimitError{
		What:   fmt.Sprintf("the slots and message buffers of %s for %d ranks", n.Name, len(n.ends)),
		Found:  mem.Text(n.Caps.MaxPinned) + " that it may register (PGAS_MAX_PINNED, or RLIMIT_MEMLOCK)",
		Needed: mem.Text(need) + " in all, and what the program exposes or has registered",
		Setting: fmt.Sprintf("PGAS_MAX_PINNED=%dM or more within RLIMIT_MEMLOCK: ulimit -l unlimited, memlock in /etc/security/limits.conf, or "+
			"LimitMEMLOCK of the service", (need+mib-1)/mib),
	}
}
