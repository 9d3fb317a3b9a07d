package hose

import (
	"fmt"
	"slices"

	"gopgas/firehose"
)

// Messages about firehoses are sent again as others are while their connection is mended. If one cannot be delivered to
// a rank that lives, the two ranks part, in one direction: who asked for moves forgets what he holds and says so
// (Forgotten), and the owner lets go of it; who could not deliver an answer has the asker do that (Forget). From
// then on messages carry what firehoses did.

// failed is the end of a message that was not delivered, or not understood.
func (h *Set) failed(k Kind, rank int, err error) {
	if k == Ask {
		h.End(rank, h.nic.Drop(rank), err)
		return
	}
	h.again(rank, k)
}

// again repeats what a message was to bring about that was not delivered: an answer cannot be repeated, but taken back.
func (h *Set) again(rank int, k Kind) {
	switch {
	case h.nic.Gone(rank) != nil:
	case k == Forgotten:
		h.tell(rank, Forgotten, nil)
	default:
		h.tell(rank, Forget, nil)
	}
}

// End ends this rank's use of firehoses on another one's memory, since a move did not get there. dropped are the
// cookies of the messages to it that were ended for that: none of them may arrive after what goes in their place.
func (h *Set) End(rank int, dropped []uint64, err error) {
	gone := h.nic.Gone(rank)
	for _, c := range dropped {
		if k, _ := saidTo(c); k != Ask {
			h.again(rank, k)
		}
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	if !h.asked[rank] {
		return
	}
	h.out = slices.DeleteFunc(h.out, func(o outgoing) bool {
		return o.rank == rank && (o.kind == Ask || o.kind == Forgotten)
	})
	if gone != nil {
		h.holder.Lost(rank, gone)
		return
	}
	h.holder.Lost(rank, fmt.Errorf("%w: %w", firehose.ErrMove, err))
	h.out = append(h.out, outgoing{rank, Forgotten, nil})
	h.work.Store(true)
}

// Lost ends everything with a rank that is gone.
func (h *Set) Lost(rank int) {
	h.server.Lost(rank)
	gone := h.nic.Gone(rank)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.holder.Lost(rank, gone)
}
