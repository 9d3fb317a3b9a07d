package proto

import (
	"context"
	"fmt"

	"gopgas/internal/card"
	"gopgas/transport"
)

// Memory that a NIC has no room to register is exposed all the same. Where the limit is known beforehand there is a budget, which
// buckets share; where the NIC has told none, or where not all members have such a budget, such memory is bare: it is reached through
// its owner's CPU, by messages and leases.

// bareMark is the number of bare memory, or marks the one that it had.
const bareMark = 1 << 31

// fallBack exposes memory whose registration was refused for want of room, in the way that this rank would choose: others may have a
// say. Its error is the refusal where there is no way.
func (xp *Exposure) fallBack(refused error) (err error) {
	switch n := xp.e.nic(); {
	case n.Payload == 0:
		return refused
	case n.hoses == nil:
		xp.strip()
		return nil
	default:
		xp.region = transport.Region{}
		xp.hosed, xp.region.RKey, err = n.exposeHosed(xp.Local)
		return err
	}
}

// strip makes the memory bare.
func (xp *Exposure) strip() {
	n := xp.e.nic()
	xp.hosed, xp.region = bareMark, transport.Region{RKey: n.nameKey()}
	n.exposed.Know(xp.region.RKey, xp.Local)
}

// Bare reports whether some member's part could not be registered and is reached through its owner's CPU alone. It is the same on all
// members.
func (xp *Exposure) Bare() bool { return xp.bare }

// bucketed reports whether parts that are not registered as a whole are in buckets, as far as they are not bare anyway: all members
// have a budget. All see the same cards, so all say the same.
func bucketed(cards []card.Card) bool {
	for _, c := range cards {
		if c.Budget == 0 {
			return false
		}
	}
	return true
}

// agree settles how the parts are reached that are not registered as a whole: in buckets, for which all members must divide their
// budgets alike, or bare. It returns whether buckets are used at all.
func (xp *Exposure) agree(cards []card.Card, ranks []int) (buckets bool, err error) {
	n := xp.e.nic()
	for m, c := range cards {
		switch {
		case c.Hosed == 0:
		case n == nil || n.Payload == 0:
			return false, fmt.Errorf("reach rank %d, whose memory is larger than what it may register: %w: this rank's NIC has no messages",
				ranks[m], transport.ErrUnsupported)
		case c.Hosed&bareMark == 0:
			buckets = true
		}
	}
	switch {
	case !buckets:
		return false, nil
	case bucketed(cards):
		return true, n.hoses.Agree(xp.budgets(cards, ranks))
	case xp.hosed != 0 && xp.hosed&bareMark == 0:
		// The key that the others were told stays; nobody has asked for a bucket.
		err = n.hoses.Withdraw(context.Background(), xp.hosed)
		xp.hosed |= bareMark
	}
	return false, err
}

// budgets are the hashes of the members' budgets, by rank in the world.
func (xp *Exposure) budgets(cards []card.Card, ranks []int) []uint64 {
	hashes := make([]uint64, xp.e.Size)
	for r := range hashes {
		hashes[r] = xp.e.nic().hoses.Hash() // ranks outside the group have no say
	}
	for m, c := range cards {
		hashes[ranks[m]] = c.Budget
	}
	return hashes
}
