package am

import "gopgas/transport"

// slot is one unanswered request of this rank.
type slot struct {
	seq    uint64
	to     int
	cookie uint64
	ep     transport.EP // over which it was posted last
	tries  int          // how often it was sent again

	open    bool // the caller has yet to be told of its end
	posting bool // its posting is still at work
	sending bool // the NIC has the message, or it is held to be sent again: its buffer is in use
	held    bool // of these, the latter

	lent     bool  // its payload is the caller's memory, which is told of no end while the NIC has it (A5)
	answered bool  // of a lent one: reply is here already
	gone     bool  // likewise: the rank is given up
	reply    Reply // of one that is answered
}

// atWork reports whether the NIC may be reading the caller's memory.
func (s *slot) atWork() bool { return s.lent && s.sending && !s.held }

// take opens a slot for a request over ep to a rank and takes a credit; i is -1 where one of them is missing, or the request would overtake another one (A6).
func (a *AM) take(ep transport.EP, to int, cookie uint64, lent bool) (i int, seq uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.credits[to] == 0 || len(a.free) == 0 || !a.inTurnLocked(ep, to) {
		return -1, 0
	}
	i = a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	a.credits[to]--
	s := &a.slots[i]
	*s = slot{seq: s.seq + 1, to: to, cookie: cookie, ep: ep, open: true, posting: true, sending: true, lent: lent}
	return i, s.seq
}

// inTurnLocked reports whether a request to a rank may go over ep: none waits that was to go over an older connection, or may still be found not to have gone.
func (a *AM) inTurnLocked(ep transport.EP, to int) bool {
	if a.newest[to] == ep.Incarnation {
		return true
	}
	for i := range a.slots {
		if s := &a.slots[i]; s.to == to && s.ep != ep && s.open && s.sending && !s.answered && !s.gone {
			return false
		}
	}
	a.newest[to] = ep.Incarnation
	return true
}

// posted ends the posting of slot i's request and reports whether the caller will be told of its end: by its reply or its
// failure, or by Lost.
func (a *AM) posted(i int, taken bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.slots[i]
	s.posting = false
	refused := s.open && !taken
	if refused {
		s.open = false
		a.credits[s.to]++
	}
	if !taken {
		s.sending = false
	}
	a.freeLocked(i)
	return !refused
}

// closeLocked ends an open slot.
func (a *AM) closeLocked(i int) {
	a.slots[i].open = false
	a.freeLocked(i)
}

// freeLocked gives a slot back when the last of its flags has been cleared: by then nobody uses its buffer.
func (a *AM) freeLocked(i int) {
	if s := &a.slots[i]; !s.open && !s.posting && !s.sending {
		a.free = append(a.free, i)
	}
}

// Lost ends the requests to a rank that is gone, and returns the callers' cookies: no reply will come. Of those whose payload the NIC has
// yet to give back Arrived or Again tells.
func (a *AM) Lost(rank int) []uint64 { return a.Drop(rank, 0) }

// Drop is Lost for the requests whose cookies have all bits of mask. What is on its way may arrive still, but is not
// sent again.
func (a *AM) Drop(rank int, mask uint64) []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var cookies []uint64
	for i := range a.slots {
		s := &a.slots[i]
		switch {
		case !s.open || s.to != rank || s.cookie&mask != mask:
		case s.atWork():
			s.gone = true // its completion, which comes, is its end
		default:
			cookies = append(cookies, s.cookie)
			a.endLocked(i) // the credit may be used again: the rank may come back
		}
	}
	return cookies
}

// endLocked is closeLocked, and gives the credit back.
func (a *AM) endLocked(i int) {
	a.credits[a.slots[i].to]++
	a.closeLocked(i)
}

// What becomes of an answer.
type answer uint8

const (
	answerStray answer = iota // nobody waits for it
	answerEarly               // it waits in its slot: the NIC may still read what it was lent
	answerDone                // it is the caller's
)

// finish closes the slot whose answer r is, and fills in its cookie; or has the answer wait there for requestSent.
func (a *AM) finish(i int, seq uint64, r *Reply) answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.slots[i]
	if !s.open || s.seq != seq || s.answered {
		return answerStray
	}
	r.Cookie = s.cookie
	if s.atWork() {
		s.answered, s.reply = true, *r
		return answerEarly
	}
	a.endLocked(i)
	return answerDone
}

// fail closes a slot whose request could not be sent and returns its cookie.
func (a *AM) fail(i int, seq uint64) (cookie uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.slots[i]
	if !s.open || s.seq != seq {
		return 0, false
	}
	a.endLocked(i)
	return s.cookie, true
}
