package verbs

import (
	"fmt"
	"time"

	"gopgas/transport"
)

// A device ends every operation, in an error if its peer does not answer: connections are made so that this takes half a second, or up to a
// quarter of the patience. Some forget one all the same. Soft-RoCE does when its interface goes down and comes up between a request and
// the answer, most often on a connection with itself: nothing is sent any more, and nothing is reported. So this side counts, too.
//
// A message may wait for its receiver to post a buffer, in which the NIC asks again and again and reports nothing either. Who sends
// by credits, as package am does, sends none for which no buffer is there; so a message gets three times as long, and then its
// pair is taken for one that has forgotten it.

const (
	overdueTick   = time.Second // between two looks
	overdueTicks  = 10          // without a completion, at least; looks, not time, so that a machine that stood still has the time to go on
	overdueFactor = 3           // more of them where a message may wait for a buffer
)

// debt is what a NIC owes.
type debt uint8

const (
	debtNone    debt = iota
	debtOwn          // a report that it must make whatever the peer's program does
	debtMessage      // a report of a message, or of what is behind one
)

// looks is how many looks in a row, after the first, must show the same debt until it is overdue: overdueTicks, or twice as long as the
// NIC waits for an answer.
func (o debt) looks(patience time.Duration) int {
	n := max(overdueTicks, int(2*nicSilence(patience)/overdueTick))
	if o == debtMessage {
		n *= overdueFactor
	}
	return n
}

// look is what was seen of a pair at the last looks.
type look struct {
	p     *pair
	head  uint32
	ticks int // looks since head was another
}

// watchPairs ends the pairs that owe a completion for too long, as if the peer had not answered.
func (d *domain) watchPairs() {
	seen := make([]look, len(d.table.slots))
	for d.sched.Sleep(d.ctx, d.tick) == nil {
		for slot := range seen {
			p := d.table.at(slot)
			if p == nil || p.state.Load() == pairEnded {
				seen[slot] = look{}
				continue
			}
			d.poll.mu.Lock()
			head, owed := p.head.Load(), p.owes()
			d.poll.mu.Unlock()
			if seen[slot].overdue(p, head, owed, owed.looks(d.patience)) {
				p.end(faultSilent, &StatusError{
					Op: "connection", Peer: p.peer.rank, Status: "no completion", Cause: owed.words(p.peer.rank),
				})
			}
		}
	}
}

// words says what is wrong where a debt is overdue.
func (o debt) words(peer int) string {
	if o == debtMessage {
		return fmt.Sprintf("the device has forgotten a message, or rank %d posts no buffer to receive it", peer)
	}
	return "the device has forgotten an operation"
}

// overdue notes what a look shows, and reports whether the pair has owed the same completion at more looks than there may be.
func (l *look) overdue(p *pair, head uint32, owed debt, most int) bool {
	if owed == debtNone || p != l.p || head != l.head {
		*l = look{p: p, head: head}
		return false
	}
	l.ticks++
	return l.ticks >= most
}

// owes says whether the NIC must report an operation, the first that it was asked to report, and whether a message stands before that.
// The caller holds domain.poll.
func (r *ring) owes() debt {
	owed := debtOwn
	for i := r.head.Load(); i != r.tail.Load(); i++ {
		rec := r.at(i)
		if rec.kind == transport.OpSend || rec.kind == transport.OpWriteImm {
			owed = debtMessage
		}
		if rec.asked {
			return owed
		}
	}
	return debtNone
}

// at returns the pair in a slot, or nil.
func (t *table) at(slot int) *pair { return t.slots[slot].Load() }
