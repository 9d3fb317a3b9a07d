package verbs

import (
	"time"

	"gopgas/transport"
)

// A device ends every operation, in an error if its peer does not answer: connections are made so that this takes half a second, or a
// tenth of the patience. Some forget one all the same. Soft-RoCE does when its interface goes down and comes up between a request and
// the answer, most often on a connection with itself: nothing is sent any more, and nothing is reported. So this side counts, too.

const (
	overdueTick  = time.Second // between two looks
	overdueTicks = 10          // without a completion; looks, not time, so that a machine that stood still has the time to go on
)

// look is what was seen of a pair at the last looks.
type look struct {
	p     *pair
	head  uint32
	ticks int // looks since head was another
}

// watchPairs ends the pairs that owe a completion for too long, as if the peer had not answered.
func (d *domain) watchPairs() {
	seen := make([]look, len(d.table.slots))
	for d.sched.Sleep(d.ctx, overdueTick) == nil {
		for slot := range seen {
			p := d.table.at(slot)
			if p == nil || p.state.Load() == pairEnded {
				seen[slot] = look{}
				continue
			}
			d.poll.mu.Lock()
			head, owes := p.head.Load(), p.owes()
			d.poll.mu.Unlock()
			if seen[slot].overdue(p, head, owes) {
				p.end(faultSilent, &StatusError{
					Op: "connection", Peer: p.peer.rank, Status: "no completion", Cause: "the device has forgotten an operation",
				})
			}
		}
	}
}

// overdue notes what a look shows, and reports whether the pair has owed the same completion at too many looks.
func (l *look) overdue(p *pair, head uint32, owes bool) bool {
	if !owes || p != l.p || head != l.head {
		*l = look{p: p, head: head}
		return false
	}
	l.ticks++
	return l.ticks >= overdueTicks
}

// owes reports whether the NIC must report an operation whatever the peer's program does: a message, and what is behind it, waits for
// a receive buffer. The caller holds domain.poll.
func (r *ring) owes() bool {
	for i := r.head.Load(); i != r.tail.Load(); i++ {
		switch rec := r.at(i); {
		case rec.kind == transport.OpSend || rec.kind == transport.OpWriteImm:
			return false
		case rec.signaled:
			return true
		}
	}
	return false
}

// at returns the pair in a slot, or nil.
func (t *table) at(slot int) *pair {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.slots[slot]
}
