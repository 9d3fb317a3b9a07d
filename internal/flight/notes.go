package flight

import (
	"slices"

	"gopgas/internal/am"
)

// Cookie marks the cookies of notes; the low bits are the note's number.
const Cookie = 1 << 61

// note is a message about a lease that must get to a rank for as long as that lives. The zero note is none.
type note struct {
	kind       noteKind
	rank       int
	generation uint64 // of the lease; 0: the one for the tag
	tag        uint64
	place      int32 // of the pipe that had it, to be forgiven; -1: none

	id   uint32
	sent bool
}

type noteKind uint8

const (
	noteReturn noteKind = iota + 1 // the receiver may have its lease back: nothing of this rank's is in flight into it
	noteStop                       // the receiver is to stop putting into a lease, and then to return it
)

// Noted is the handler of notes: ToReturn and ToStop. Otherwise as Serve.
func (s *Flights) Noted(k Kind, r am.Request, out []byte) (int, bool) {
	if s.target == nil || r.From < 0 || r.From >= len(s.unequal) {
		return 0, false
	}
	generation, tag := r.Args[0], r.Args[1]
	out[0] = 0
	switch k {
	case ToReturn:
		if s.target.Return(r.From, generation, tag) {
			out[0] = 1
		}
	case ToStop:
		s.mu.Lock()
		for i := range s.flights {
			f := &s.flights[i]
			if f.lease != nil && f.lease.serves.Bytes > 0 && f.rank == r.From && f.lease.generation == generation {
				f.pipe.Fail(errNoLease)
				out[0] = 1 // it will say when it has stopped
			}
		}
		s.mu.Unlock()
	}
	return 1, true
}

// tell has a note sent.
func (s *Flights) tell(n note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(n)
}

func (s *Flights) tellLocked(n note) {
	if s.peers.Check(n.rank) != nil || s.n.Closed() {
		return
	}
	s.noted++ // no number is soon used again: who sends, and an answer, may still mean a note that was dropped meanwhile
	n.id = s.noted
	s.notes = append(s.notes, n)
	s.work.Store(true)
}

// send sends the notes that wait for that, as far as there is room. It is called by the poller.
func (s *Flights) send() {
	s.work.Store(false)
	s.mu.Lock()
	all := slices.Clone(s.notes)
	s.mu.Unlock()
	for _, o := range all {
		if o.sent {
			continue
		}
		s.mark(o.id, true) // the answer may come before post returns
		if !s.post(&o) {
			s.mark(o.id, false)
			s.work.Store(true)
		}
	}
}

// mark notes whether a note is on its way.
func (s *Flights) mark(id uint32, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.notes {
		if s.notes[i].id == id {
			s.notes[i].sent = sent
		}
	}
}

// post sends one note if there are a connection and room now.
func (s *Flights) post(o *note) bool {
	if s.n.Closed() || s.peers.Check(o.rank) != nil {
		return true // nobody waits for it
	}
	k := ToReturn
	if o.kind == noteStop {
		k = ToStop
	}
	sent, err := s.n.TryAsk(o.rank, s.first+uint8(k), [4]uint64{o.generation, o.tag}, nil, Cookie|uint64(o.id))
	return sent && err == nil
}

// Answered takes in the answer to a note. One that was not delivered is sent again.
func (s *Flights) Answered(r am.Reply, err error) {
	id := uint32(r.Cookie)
	s.mu.Lock()
	i := slices.IndexFunc(s.notes, func(o note) bool { return o.id == id })
	if i < 0 {
		s.mu.Unlock()
		return
	}
	o := s.notes[i]
	done := err == nil && len(r.Payload) > 0
	if !done || o.kind == noteReturn && r.Payload[0] == 0 { // not delivered, or not yet done
		s.notes[i].sent = false
		s.work.Store(true)
		s.mu.Unlock()
		return
	}
	s.notes = slices.Delete(s.notes, i, i+1)
	s.mu.Unlock()
	switch {
	case o.kind == noteReturn && o.place >= 0:
		s.origin.Forgive(o.place)
	case o.kind == noteStop && r.Payload[0] == 0:
		s.target.Return(o.rank, o.generation, 0) // nobody is at it
	}
}

// dropNotes forgets the notes to a rank that is gone.
func dropNotes(all []note, rank int) []note {
	return slices.DeleteFunc(all, func(o note) bool { return o.rank == rank })
}
