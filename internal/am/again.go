package am

import (
	"slices"

	"gopgas/transport"
)

// heldOp is a message whose connection broke before it was sent: a request's slot, or a reply's buffer.
type heldOp struct {
	rank  int
	index int
	reply bool
	ep    transport.EP // over which it did not go
}

// sentReply is the reply in a reply buffer.
type sentReply struct{ rank, bytes int }

// MostTries is how often a request, or any other operation, is sent again over a new connection before it fails.
const MostTries = 3

// requestSent is the end of a request's sending. Only a failure is news, and what was lent is no longer (A5): a flushed request is sent
// again (A4), and any other gets no reply.
func (a *AM) requestSent(i int, c *transport.Completion) (Reply, bool, error) {
	a.mu.Lock()
	s := &a.slots[i]
	seq, to := s.seq, s.to
	again := c.Status == transport.StatusFlushed && s.open && !s.answered && !s.gone && s.tries < MostTries
	if again {
		s.held = true
	} else {
		s.sending = false
		if s.open && s.answered {
			r := s.reply
			a.endLocked(i)
			a.mu.Unlock()
			return r, true, nil
		}
		a.freeLocked(i) // if it was answered, or given up, before
	}
	gone := s.gone
	a.mu.Unlock()
	if again {
		a.hold(heldOp{rank: to, index: i, ep: c.EP})
		return Reply{}, false, nil
	}
	if c.Status == transport.StatusOK && !gone {
		return Reply{}, false, nil
	}
	cookie, known := a.fail(i, seq)
	if !known {
		return Reply{}, false, nil // Lost has told the caller
	}
	if c.Status == transport.StatusPeerGone {
		return Reply{Cookie: cookie, buffer: -1}, true, errGone
	}
	return Reply{Cookie: cookie, buffer: -1}, true, ErrLost
}

// replySent is the end of a reply's sending. A flushed one is sent again, as often as it takes: the asker waits for it as
// long as this rank is there, and drops what he has already.
func (a *AM) replySent(k int, c *transport.Completion) error {
	if c.Status == transport.StatusFlushed {
		a.hold(heldOp{rank: a.sent[k].rank, index: k, reply: true, ep: c.EP})
		return nil
	}
	a.freeRep = append(a.freeRep, k)
	return a.serve()
}

func (a *AM) hold(h heldOp) {
	a.held = append(a.held, h)
	a.anyHeld.Store(int32(len(a.held)))
}

// first reports whether a request was not performed before: one that is sent again may have arrived the first time.
func (a *AM) first(h *header) bool {
	if int(h.from) >= len(a.seen) {
		return false // of no rank of this world
	}
	if a.seen[h.from] == nil {
		a.seen[h.from] = make([]uint64, ownRequests)
	}
	last := &a.seen[h.from][h.slot]
	if h.seq <= *last {
		return false
	}
	*last = h.seq
	return true
}

// Route says how a rank can be reached now.
type Route uint8

// The routes.
const (
	Waiting Route = iota // its connection is being made
	Open
	Gone
)

// Holds reports whether messages wait for a connection. Any goroutine may ask.
func (a *AM) Holds() bool { return a.anyHeld.Load() > 0 }

// Unsent is a request that was not sent, and will not be.
type Unsent struct {
	Rank   int
	Cookie uint64
}

// Again sends the messages that wait for a connection and whose rank route gives one, and forgets those to ranks that
// are gone, or, where a request waits for it, cannot be reached. It returns requests whose callers Lost cannot tell: it was called while they were sent, or before they were made. The poller
// calls it; it allocates.
func (a *AM) Again(route func(rank int, reply bool) (transport.EP, Route)) (lost []Unsent) {
	keep := a.held[:0]
	for _, h := range a.held {
		ep, r := route(h.rank, h.reply)
		if r == Open && !h.reply && waits(keep, h.rank) {
			r = Waiting // it has come up meanwhile, or the NIC had no room
		}
		if !h.reply && r == Waiting && !a.awaited(h.index) {
			r = Gone
		}
		switch {
		case r == Gone:
			if cookie, open := a.forget(h); open {
				lost = append(lost, Unsent{h.rank, cookie})
			}
			continue
		case r == Open && h.reply:
			a.replyAgain(h, ep)
			continue
		case r == Open:
			sent, cookie, gone := a.requestAgain(h, ep)
			if gone {
				lost = append(lost, Unsent{h.rank, cookie})
			}
			if sent || gone {
				continue
			}
		}
		keep = append(keep, h)
	}
	a.held = keep
	a.anyHeld.Store(int32(len(a.held)))
	return lost
}

// waits reports whether a request to a rank is among the held.
func waits(held []heldOp, rank int) bool {
	return slices.ContainsFunc(held, func(h heldOp) bool { return h.rank == rank && !h.reply })
}

// awaited reports whether somebody waits for the reply to a request.
func (a *AM) awaited(i int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.slots[i].open
}

// replyAgain has a held reply sent over a new connection.
func (a *AM) replyAgain(h heldOp, ep transport.EP) {
	k := a.nRecv + ownRequests + h.index
	a.replies = append(a.replies, a.send(ep, a.buffer(k), a.sent[h.index].bytes, uint64(k)))
}

// requestAgain posts a held request, or says that the NIC has no room. If gone is set Lost was called for its rank meanwhile, and its end is
// to be told.
func (a *AM) requestAgain(h heldOp, ep transport.EP) (sent bool, cookie uint64, gone bool) {
	a.mu.Lock()
	s := &a.slots[h.index]
	open := s.open
	s.held = !open // the NIC may have it from here on
	if open {
		s.ep = ep
	}
	a.mu.Unlock()
	if !open { // given up meanwhile
		a.forget(h)
		return true, 0, false
	}
	a.op[h.index].EP = ep
	n, err := a.d.Post(a.op[h.index : h.index+1])
	a.mu.Lock()
	defer a.mu.Unlock()
	if n == 1 {
		s.tries++
		return true, 0, false
	}
	s.held = true
	if s.gone {
		s.sending = false
		a.endLocked(h.index)
		return false, s.cookie, true
	}
	return err != nil, 0, false // a NIC that takes nothing any more is closing
}

// forget frees the buffer of a message to a rank that is gone. A request whose caller waits for its answer is over, too: Lost may have been
// called for the rank before it was made.
func (a *AM) forget(h heldOp) (cookie uint64, open bool) {
	if h.reply {
		a.freeRep = append(a.freeRep, h.index)
		return 0, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.slots[h.index]
	cookie, open = s.cookie, s.open
	s.sending = false
	if open {
		a.endLocked(h.index)
	} else {
		a.freeLocked(h.index)
	}
	return cookie, open
}
