package proto

import (
	"cmp"

	"gopgas/internal/am"
	"gopgas/internal/hose"
	"gopgas/internal/peers"
	"gopgas/transport"
)

// client is what room nic calls upwards: see nic.Client. What is piped, leased or in buckets learns here how its operations end.
type client struct{ n *device }

// Landed gives back what keeps the memory of a piece registered.
func (c client) Landed(id int32) {
	if h := &c.n.holds[id]; h.Region() != nil {
		c.n.direct.reg.Release(h)
	}
}

// LetGoLocked lets go of a piece's firehose.
func (c client) LetGoLocked(id int32) { c.n.hoses.ReleaseLocked(id) }

// Reported tells whose operation a piece was how it ended.
func (c client) Reported(cookie uint64, err error) {
	if cookie&gaugeCookie != 0 {
		c.n.gauge.reported(err)
	} else {
		c.n.flights.Reported(cookie, err)
	}
}

// Handle performs a request of a peer.
func (c client) Handle(r am.Request, out []byte) (int, uint8) { return c.n.handle(r, out) }

// Answered takes the answer to a message about firehoses or leases.
func (c client) Answered(r am.Reply, err error) {
	if r.Cookie&hose.Cookie != 0 {
		c.n.hoses.Answered(r.Cookie, r.Status, r.Payload, err)
	} else {
		c.n.flights.Answered(r, err)
	}
}

// Arrived takes data that lie in this rank's workspace.
func (c client) Arrived(k *transport.Completion) bool {
	return c.n.flights.Arrived(k)
}

// GaveUp ends what is under way with a rank by more than pieces.
func (c client) GaveUp(rank int, cookies []uint64, err error) {
	n := c.n
	var hoses, notes []uint64
	for _, id := range cookies {
		if id&hose.Cookie != 0 {
			hoses = append(hoses, id)
		} else {
			notes = append(notes, id)
		}
	}
	n.flights.GaveUp(rank, notes, err)
	gone := n.e.Peers.Check(rank) != nil
	if gone {
		n.endLoan(rank)
	}
	switch {
	case n.hoses == nil:
	case gone:
		n.hoses.Lost(rank)
	default:
		n.hoses.End(rank, hoses, err)
	}
}

// Advance moves firehoses, pipes and leases along.
func (c client) Advance() (moved bool) {
	if c.n.hoses != nil {
		c.n.hoses.Progress()
	}
	if c.n.flights.Resting() {
		return false
	}
	return c.n.flights.Advance()
}

// Watchful reports whether there are leases.
func (c client) Watchful() bool { return c.n.flights.Watchful() }

// Tell writes who is gone into the rank blocks of those who have not seen it themselves: first of those that are connected, since one that must be
// connected first may be out of reach, and each teller begins with another. It reports whether somebody could not be told. (That a put was posted and has come to
// nothing in the end, over several connections, the next flush says, like of any other.)
func (c client) Tell() (missed bool) {
	n := c.n
	size := n.e.Size
	var later []int
	for i := 1; i < size; i++ {
		if r := (n.e.Rank + i) % size; n.Connected(r) {
			missed = !c.tell(r) || missed
		} else {
			later = append(later, r)
		}
	}
	for _, r := range later {
		missed = !c.tell(r) || missed
	}
	return missed
}

// tell is Tell of one rank; it reports whether that one knows, or need not. Who could not be told may be out of reach for now, as one of the two has no descriptor
// left, and may wait for the dead for ever: nobody else need have heard. Who was lost first goes first: the others may have ended because of that one.
func (c client) tell(r int) (done bool) {
	n, p := c.n, c.n.e.Peers
	if r >= len(n.e.blocks) || n.e.blocks[r].Mapped.Bytes != 0 {
		return true
	}
	to, size := &n.e.blocks[r], n.e.Size
	began := max(int(p.First())-1, 0)
	for i := range size {
		dead := (began + i) % size
		cause := p.Cause(dead)
		if cause == 0 || p.Cause(r) != 0 {
			continue
		}
		// The cause may have come a moment before the word on who was first. A 0 for that would take what the other rank knows from it,
		// and it would not look at causes any more.
		first := cmp.Or(p.First(), uint64(dead)+1)
		err := n.store64("tell", to, peers.GoneOff(dead), uint64(cause), false)
		if err == nil {
			err = n.store64("tell", to, peers.FirstOff, first, false)
		}
		if err != nil {
			return p.Cause(r) != 0 || n.Closed()
		}
	}
	return true
}
