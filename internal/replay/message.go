package replay

import (
	"cmp"
	"fmt"
	"slices"

	"gopgas/firehose"
	"gopgas/internal/predict"
)

// message is a move or its answer on its way, as it would be on the wire.
type message struct {
	at    predict.Nanos // when it arrives
	seq   uint64        // in the order of sending
	from  int
	reply bool
	bytes []byte
}

// send sends the moves that are planned.
func (h *hoseEnd) send(now predict.Nanos) {
	h.now = now
	h.holder.Send(h)
}

// Move implements firehose.Mover.
func (h *hoseEnd) Move(peer int, m *firehose.Move) (bool, error) {
	h.post(peer, message{at: h.now + h.latency, from: h.rank, bytes: m.Append(nil)})
	return true, nil
}

// put keeps a message until it arrives.
func (h *hoseEnd) put(m message) {
	i, _ := slices.BinarySearchFunc(h.inbox, m, func(a, b message) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	h.inbox = slices.Insert(h.inbox, i, m)
}

// arrive takes in the first message.
func (r *rank) arrive(now predict.Nanos) error {
	h := r.hose
	m := h.inbox[0]
	h.inbox = slices.Delete(h.inbox, 0, 1)
	if m.reply {
		var reply firehose.Reply
		if err := reply.Parse(m.bytes); err != nil {
			return fmt.Errorf("rank %d: an answer of rank %d: %w", r.id, m.from, err)
		}
		if err := h.holder.Reply(m.from, &reply); err != nil {
			return fmt.Errorf("rank %d: %w", r.id, err)
		}
		h.send(now)
		r.wakened(now)
		return nil
	}
	if h.busy > now { // one after the other
		m.at = h.busy
		h.put(m)
		return nil
	}
	return r.serve(now, m)
}

// serve carries out a move. The rank's program goes on meanwhile.
func (r *rank) serve(now predict.Nanos, m message) error {
	h := r.hose
	var move firehose.Move
	if err := move.Parse(m.bytes); err != nil {
		return fmt.Errorf("rank %d: a move of rank %d: %w", r.id, m.from, err)
	}
	r.cache.account.pass(now)
	h.lender.at = now
	var reply firehose.Reply
	if !h.lender.server.Serve(m.from, &move, &reply) {
		return fmt.Errorf("rank %d: a move of rank %d was put aside, though none else is served", r.id, m.from)
	}
	h.busy = h.lender.at
	h.post(m.from, message{at: h.busy + h.latency, from: r.id, reply: true, bytes: reply.Append(nil)})
	return nil
}

// wakened goes on with the call that waited, if it need not wait any longer.
func (r *rank) wakened(now predict.Nanos) {
	if f := r.hose.flow; f != nil && f.q != nil && f.q.State() != firehose.Waiting {
		r.goOn(now)
	}
}
