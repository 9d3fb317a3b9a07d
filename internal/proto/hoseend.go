package proto

import (
	"fmt"
	"slices"

	"gopgas/firehose"
	"gopgas/internal/am"
)

// Messages about firehoses are sent again as others are while their connection is mended. If one cannot be delivered to
// a rank that lives, the two ranks part, in one direction: who asked for moves forgets what he holds and says so
// (askForgotten), and the owner lets go of it; who could not deliver an answer has the asker do that (askForget). From
// then on messages carry what firehoses did.

// tell has a message sent by the poller.
func (h *hoses) tell(rank int, handler uint8, b []byte) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.out = append(h.out, outgoing{rank, handler, b})
	h.work.Store(true)
}

// post sends one message, unless there is no connection or no room now: then sent is false.
func (h *hoses) post(o *outgoing) (sent bool, err error) {
	n := h.n
	if n.e.Peers.Check(o.rank) != nil || n.closed.Load() {
		return true, nil // who waits for it learns of that
	}
	if !n.tryEnter(o.rank) {
		n.want(o.rank)
		return false, nil
	}
	e := &n.ends[o.rank]
	defer e.leave()
	if !n.push() {
		return false, nil // what was put before goes before
	}
	return n.am.Request(e.now(), o.rank, o.handler, [4]uint64{}, o.bytes, cookieOf(o.handler, o.rank))
}

// failed is the end of a message that was not delivered, or not understood.
func (h *hoses) failed(handler uint8, rank int, err error) {
	if handler == askMove {
		h.part(rank, h.n.am.Drop(rank, hoseCookie), err)
		return
	}
	h.again(rank, handler)
}

// again repeats what a message was to bring about that was not delivered: an answer cannot be repeated, but taken back.
func (h *hoses) again(rank int, handler uint8) {
	switch {
	case h.n.e.Peers.Check(rank) != nil:
	case handler == askForgotten:
		h.tell(rank, askForgotten, nil)
	default:
		h.tell(rank, askForget, nil)
	}
}

// part ends this rank's use of firehoses on another one's memory, since a move did not get there. dropped are the
// cookies of the messages to it that were ended for that: none of them may arrive after what goes in their place.
func (h *hoses) part(rank int, dropped []uint64, err error) {
	gone := h.n.e.Peers.Check(rank)
	for _, c := range dropped {
		if handler, _ := saidTo(c); handler != askMove {
			h.again(rank, handler)
		}
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if !h.asked[rank] {
		return
	}
	h.out = slices.DeleteFunc(h.out, func(o outgoing) bool {
		return o.rank == rank && (o.handler == askMove || o.handler == askForgotten)
	})
	if gone != nil {
		h.holder.Lost(rank, gone)
		return
	}
	h.holder.Lost(rank, fmt.Errorf("%w: %w", firehose.ErrMove, err))
	h.out = append(h.out, outgoing{rank, askForgotten, nil})
	h.work.Store(true)
}

// forget is the handler of askForget and askForgotten.
func (h *hoses) forget(r am.Request) (int, uint8) {
	switch {
	case r.From < 0 || r.From >= h.n.e.Size:
		return 0, statusMalformed
	case r.Handler == askForgotten:
		h.server.Lost(r.From)
	default:
		h.part(r.From, h.n.am.Drop(r.From, hoseCookie), errUnanswered)
	}
	return 0, statusOK
}

var errUnanswered = fmt.Errorf("the owner could not deliver its answer: %w: %w", errConnectionLost, am.ErrLost)

// lost ends everything with a rank that is gone.
func (h *hoses) lost(rank int) {
	h.server.Lost(rank)
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.holder.Lost(rank, h.n.e.Peers.Check(rank))
}
