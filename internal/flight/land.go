package flight

import (
	"slices"

	"gopgas/internal/nic"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
)

// Resting reports whether there is nothing for Advance to do.
func (s *Flights) Resting() bool {
	return s.live.Load() == 0 && !s.work.Load() && (s.target == nil || !s.target.Busy() && s.pulling.Load() == 0)
}

// Advance moves all flights along, and ends those that are over. It is called by the poller.
func (s *Flights) Advance() (moved bool) {
	if s.target != nil && (s.target.Busy() || s.pulling.Load() != 0) {
		moved = s.advanceLeases()
	}
	if s.live.Load() > 0 {
		moved = s.advanceFlights() || moved
	}
	if s.work.Load() {
		s.send()
	}
	return moved
}

// advanceFlights is advance for what this rank sends, and gets of what is registered.
func (s *Flights) advanceFlights() (moved bool) {
	// Until nothing moves: then each pipe waits for something that the NIC will report, and whoever polls may sleep.
	for s.origin.Progress() {
		moved = true
	}
	s.unhold()
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.flights[:0]
	someGone := s.peers.First() != 0
	for _, f := range s.flights {
		if someGone {
			if err := s.peers.Check(f.rank); err != nil {
				f.pipe.Fail(err) // whoever has said so: the NIC may not know
				moved = f.pipe.Step() || moved
			}
		}
		held := f.helping != nil || f.holds()
		moved = moved || held && f.pipe.Done() && f.helping == nil // it has ended since unhold looked
		done := f.pipe.Done() && !held && (f.lease == nil || f.lease.state != leaseAsked)
		s.landLocked(&f, done)
		if !done {
			rest = append(rest, f)
			continue
		}
		s.count(&f)
		s.origin.Reuse(f.pipe)
		moved = true
	}
	clear(s.flights[len(rest):])
	s.flights = rest
	s.live.Store(int32(len(rest)))
	return moved
}

// unhold gives back what transfers had that are over, before their waiters learn of that: registrations of sources, and of what helpers
// have registered, and ground.
func (s *Flights) unhold() {
	if s.someOver() { // asked apart: most polls find nothing, and what is below has much to clear
		s.unholdAll()
	}
}

// someOver reports whether the pipe of a flight is done.
func (s *Flights) someOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.flights {
		if s.flights[i].pipe.Done() {
			return true
		}
	}
	return false
}

// unholdAll is unhold where there may be something to give back.
func (s *Flights) unholdAll() {
	var free [2 * superpipe.Most]regmgr.Hold
	var grounds [superpipe.Most]Ground
	k, left := 0, 0
	s.mu.Lock()
	for i := range s.flights {
		f := &s.flights[i]
		if !f.pipe.Done() || k+2 > len(free) || left == len(grounds) { // the others the next time
			continue
		}
		if f.hold.Region() != nil {
			free[k], k, f.hold = f.hold, k+1, regmgr.Hold{}
		}
		if v := f.lease; v != nil && v.ground != nil {
			grounds[left], left, v.ground = v.ground, left+1, nil
		}
		if f.helping != nil && f.helping.done.Load() {
			free[k], k, f.helping = f.helping.hold, k+1, nil
		}
	}
	s.mu.Unlock()
	for i := range free[:k] {
		if free[i].Region() != nil {
			s.reg.Release(&free[i])
		}
	}
	for _, g := range grounds[:left] {
		g.Release()
	}
}

// holds reports whether a flight has something to give back: a registered source, or ground.
func (f *flight) holds() bool {
	return f.hold.Region() != nil || f.lease != nil && f.lease.ground != nil
}

// count counts a transfer that is over.
func (s *Flights) count(f *flight) {
	if f.pipe.Err() != nil {
		return
	}
	copied := uint64(f.pipe.Copied())
	direct := uint64(f.pipe.Bytes()) - copied
	s.copied.Add(copied)
	s.direct.Add(direct)
	if f.lease != nil && !f.lease.keyed {
		s.gathered.Add(direct)
	}
}

// landLocked ends a flight's handle when the user's memory is his again, and what a flush waits for when it is over.
func (s *Flights) landLocked(f *flight, done bool) {
	if f.pipe.Done() && f.holds() || f.hold.Region() != nil || f.lease != nil && !s.leaseLandsLocked(f, done) {
		return
	}
	sourced := !f.get && f.pipe.Sourced()
	over := f.pipe.Done() // asked last: a pipe that has failed counts as sourced, and its error must be told
	if !f.ended && (over || sourced) {
		f.ended, f.told = true, over
		var err error
		if over {
			err = f.pipe.Err()
		}
		s.n.PartDone(f.h, err)
	}
	if !done {
		return
	}
	var err error
	if !f.told {
		err = f.pipe.Err()
	}
	s.n.Ended(f.rank, f.number, err)
}

// leaseLandsLocked does what a lease demands when a flight goes on or ends. It reports false where there is nothing else to do.
func (s *Flights) leaseLandsLocked(f *flight, done bool) bool {
	v := f.lease
	switch {
	case v.state == leaseAsked:
		return false
	case v.state == leaseGranted && v.keyed:
		return true
	case v.state == leaseGranted && done:
		s.flying.Add(-1)
		s.tellLocked(note{kind: noteReturn, rank: f.rank, generation: v.generation, tag: v.tag, place: f.pipe.Place()})
	case v.state == leaseRefused && done && v.serves.Bytes == 0: // who has asked goes another way
		s.n.PartDone(f.h, nil)
		s.n.Ended(f.rank, f.number, nil)
	}
	return v.state == leaseGranted && v.serves.Bytes == 0
}

// pull is a get through a lease of this rank's own workspace.
type pull struct {
	rank   int
	grant  superpipe.Grant
	h      nic.Handle
	number uint64 // see nic.Began
}

// lost takes back what is leased to a rank of which the NIC has said that it is gone: nothing of it lands any more.
func (s *Flights) lost(rank int) {
	if s.target == nil {
		return
	}
	s.target.Lost(rank)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = dropNotes(s.notes, rank)
}

// advanceLeases copies what has arrived through leases, and ends gets that are over.
func (s *Flights) advanceLeases() (moved bool) {
	for s.target.Progress() {
		moved = true
	}
	if s.pulling.Load() == 0 {
		return moved
	}
	for i := 0; ; {
		s.mu.Lock()
		if i >= len(s.pulls) {
			s.mu.Unlock()
			break
		}
		p := s.pulls[i]
		s.mu.Unlock()
		if s.land(p) { // a lease's lock comes before the NIC's
			moved = true // and another one is in its place
		} else {
			i++
		}
	}
	return moved
}

// land ends a get whose lease has come to its end.
func (s *Flights) land(p pull) bool {
	copied, ended := s.target.Outcome(p.grant)
	err := s.peers.Check(p.rank)
	switch {
	case copied:
		err = nil
	case !ended && err == nil:
		return false
	case !ended: // the NIC may have more of it on its way into the slots
		s.target.Stop(p.grant)
	case err == nil:
		err = nic.ErrConnectionLost
	}
	return s.pulled(p, err)
}

// pulled ends a get; it reports false if somebody else has.
func (s *Flights) pulled(p pull, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.pulls {
		if s.pulls[i] == p {
			s.pulls = slices.Delete(s.pulls, i, i+1)
			s.pulling.Add(-1)
			s.n.PartDone(p.h, err)
			s.n.Ended(p.rank, p.number, nil)
			return true
		}
	}
	return false
}
