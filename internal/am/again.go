package am

import "gopgas/transport"

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

// requestSent is the end of a request's sending. Only a failure is news: a flushed request is sent again (A4), and any
// other gets no reply.
func (a *AM) requestSent(i int, c *transport.Completion) (Reply, bool, error) {
	a.mu.Lock()
	s := &a.slots[i]
	seq, to := s.seq, s.to
	again := c.Status == transport.StatusFlushed && s.open && s.tries < MostTries
	if !again {
		s.sending = false
		a.freeLocked(i) // if it was answered, or given up, before
	}
	a.mu.Unlock()
	if again {
		a.hold(heldOp{rank: to, index: i, ep: c.EP})
		return Reply{}, false, nil
	}
	if c.Status == transport.StatusOK {
		return Reply{}, false, nil
	}
	cookie, known := a.finish(i, seq)
	if !known {
		return Reply{}, false, nil // Lost has told the caller
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
		a.seen[h.from] = make([]uint32, ownRequests)
	}
	last := &a.seen[h.from][h.slot]
	if int32(h.seq-*last) <= 0 {
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

// Again sends the messages that wait for a connection and whose rank route gives one, and forgets those to ranks that
// are gone. The poller calls it; it allocates.
func (a *AM) Again(route func(rank int) (transport.EP, Route)) {
	keep := a.held[:0]
	for _, h := range a.held {
		ep, r := route(h.rank)
		if !h.reply && r == Waiting && !a.awaited(h.index) {
			r = Gone
		}
		if r == Waiting || r == Open && !a.sendAgain(h, ep) {
			keep = append(keep, h)
		} else if r == Gone {
			a.forget(h)
		}
	}
	a.held = keep
	a.anyHeld.Store(int32(len(a.held)))
}

// awaited reports whether somebody waits for the reply to a request.
func (a *AM) awaited(i int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.slots[i].open
}

// sendAgain posts a held message, or says that the NIC has no room.
func (a *AM) sendAgain(h heldOp, ep transport.EP) bool {
	if h.reply {
		r := a.sent[h.index]
		k := a.nRecv + ownRequests + h.index
		a.replies = append(a.replies, a.send(ep, a.buffer(k), r.bytes, uint64(k)))
		return true
	}
	a.mu.Lock()
	s := &a.slots[h.index]
	open, bytes := s.open, s.bytes
	a.mu.Unlock()
	if !open { // given up meanwhile
		a.forget(h)
		return true
	}
	op := a.op[h.index : h.index+1]
	op[0] = a.send(ep, a.buffer(a.nRecv+h.index), bytes, uint64(a.nRecv+h.index))
	n, err := a.d.Post(op)
	if n == 1 {
		a.mu.Lock()
		s.tries++
		a.mu.Unlock()
	}
	return n == 1 || err != nil // a NIC that takes nothing any more is closing
}

// forget frees the buffer of a message to a rank that is gone. Lost tells the askers.
func (a *AM) forget(h heldOp) {
	if h.reply {
		a.freeRep = append(a.freeRep, h.index)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slots[h.index].sending = false
	a.freeLocked(h.index)
}
