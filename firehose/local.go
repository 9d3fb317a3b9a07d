package firehose

import (
	"errors"
	"fmt"
)

// ErrBusy: there is no room in the owner's part for a local use now, or a bucket is being registered. It may work after
// some progress, when others have unpinned.
var ErrBusy = errors.New("no room in the registration budget now")

// Around says in which bucket this rank itself had better use n bytes at off of a range: in the smallest that is registered and that they
// lie in, or else in the one that a peer would ask for, going by its size that was asked for last. ok is false where they lie in no single one.
func (s *Server) Around(id uint32, off, n uint64) (b Bucket, registered, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.ranges[id]
	if in == nil || in.closing || n == 0 || !in.r.holds(off, n) {
		return 0, false, false
	}
	for o := range s.b.MaxOrder() + 1 {
		run := in.r.Run(s.b.Shift, o, off, n)
		if run.Count != 1 {
			continue
		}
		if at := s.at.find(run.First); at >= 0 && !s.slab[at].transit {
			return run.First, true, true
		}
	}
	run := in.r.Run(s.b.Shift, in.order, off, n)
	return run.First, false, run.Count == 1
}

// Pin keeps the buckets of run registered for this rank's own use and appends their Pins; each is ended by Unpin. It
// does not wait: it fails with ErrBusy where it would have to. Who holds a pin must not wait for another one.
func (s *Server) Pin(run Run, pins []Pin) ([]Pin, error) {
	s.mu.Lock()
	defer s.unlock()
	in := s.ranges[run.First.Range()]
	switch {
	case in == nil || in.closing:
		return pins, ErrWithdrawn
	case !in.r.has(s.b.Shift, run):
		return pins, fmt.Errorf("%w: %d buckets from %v on", ErrRange, run.Count, run.First)
	case run.Weight() > s.limit:
		return pins, fmt.Errorf("%w: %d buckets of %d units, the owner's part has %d", ErrTooLarge, run.Count, run.First.Weight(), s.limit)
	}
	need, err := s.makeRoom(run)
	if err != nil {
		return pins, err
	}
	var t txn
	s.own += need
	for i := range run.Count {
		b := run.At(i)
		at := s.at.find(b)
		switch {
		case at < 0:
			at = s.add(b)
			s.slab[at].transit = true
			t.fresh = append(t.fresh, at)
		case s.slab[at].local == 0 && s.slab[at].remote == 0:
			s.leaveIdle(at)
		}
		s.slab[at].local++
	}
	if err := s.execute(&t); err != nil {
		s.unpin(run, &t, s.fallIdle)
		s.undo(&t)
		s.commit(&t)
		return pins, fmt.Errorf("register %d bytes: %w", run.Weight()<<s.b.Shift, err)
	}
	s.commit(&t)
	for i := range run.Count {
		pins = append(pins, s.slab[s.at.find(run.At(i))].pin)
	}
	return pins, nil
}

// makeRoom has victims deregistered until the owner's part has room for a local use of run, and returns how much it
// needs. Only then is it charged: a bucket that peers hold is registered already, so its charge could not wait.
func (s *Server) makeRoom(run Run) (need int64, err error) {
	for {
		var ownIdle int64
		need = 0
		for i := range run.Count {
			w, at := run.First.Weight(), s.at.find(run.At(i))
			switch {
			case at < 0:
				need += w
			case s.slab[at].transit:
				return 0, ErrBusy
			case s.slab[at].local == 0 && s.slab[at].remote > 0:
				need += w // it is charged to the peers and will be to the owner, a hit or not
			case s.slab[at].local == 0:
				ownIdle += w
			}
		}
		over := s.own + need - s.limit
		if over <= 0 {
			return need, nil
		}
		if over > s.idleW-ownIdle {
			return 0, ErrBusy
		}
		var t txn
		for at := s.idle.first(); over > 0; {
			next := s.idle.after(at)
			if b := s.slab[at].b; !run.contains(b) {
				over -= b.Weight()
				s.leaveIdle(at)
				s.expel(at, &t)
			}
			at = next
		}
		s.takeOut(&t) // without the lock: look again
		if in := s.ranges[run.First.Range()]; in == nil || in.closing {
			return 0, ErrWithdrawn
		}
	}
}

// Unpin ends what one Pin of the same run began, and returns how many bytes are free for it: of buckets that nobody else uses. These are no
// victims: who pins them keeps a cache of his own, and unpins what is to go.
func (s *Server) Unpin(run Run) (freed int64) {
	s.mu.Lock()
	defer s.unlock()
	var t txn
	s.unpin(run, &t, s.expel)
	freed = t.outW << s.b.Shift
	s.commit(&t)
	return freed
}

// unpin takes local uses off; last is what becomes of buckets without any use.
func (s *Server) unpin(run Run, t *txn, last func(int32, *txn)) {
	for i := range run.Count {
		at := s.at.find(run.At(i))
		x := &s.slab[at]
		x.local--
		switch {
		case x.local > 0:
		case x.remote > 0:
			s.own -= x.b.Weight()
		default:
			last(at, t)
		}
	}
}

// Oldest returns when the victim that Shed would give up first fell idle, by the clock given to NewServer; ok is false where
// there is none.
func (s *Server) Oldest() (age uint64, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	at := s.idle.first()
	if at < 0 {
		return 0, false
	}
	return s.slab[at].since, true
}

// Shed deregisters unused buckets, oldest first, of at least so many bytes, or all there are, and returns how many bytes
// are free now. It is for the owner of the machine's one limit, when he needs room for something else.
func (s *Server) Shed(bytes int64) (freed int64) {
	s.mu.Lock()
	defer s.unlock()
	var t txn
	for freed < bytes && s.idle.first() >= 0 {
		freed += s.slab[s.idle.first()].b.Weight() << s.b.Shift
		s.evict(&t)
	}
	s.takeOut(&t)
	return freed
}

// Withdraw begins to take a range back. Nobody is given buckets of it any more. It returns the ranks that hold some:
// each must be told, so that its Holder.Withdraw gives them up. The memory may be unmapped when Withdrawn says so.
func (s *Server) Withdraw(id uint32) (holders []int) {
	s.mu.Lock()
	defer s.unlock()
	in := s.ranges[id]
	if in == nil {
		return nil
	}
	in.closing = true
	has := make([]bool, len(s.peers))
	var t txn
	for at := range s.slab {
		x := &s.slab[at]
		if x.in != in {
			continue
		}
		for rank := range has {
			has[rank] = has[rank] || x.remote > 0 && x.count(rank) > 0
		}
		if x.remote == 0 && x.local == 0 && !x.transit {
			s.leaveIdle(int32(at))
			s.expel(int32(at), &t)
		}
	}
	s.takeOut(&t)
	for rank, h := range has {
		if h {
			holders = append(holders, rank)
		}
	}
	return holders
}

// Withdrawn reports whether nothing of a range is registered any more, after Withdraw, and then forgets the range.
func (s *Server) Withdrawn(id uint32) bool {
	s.mu.Lock()
	defer s.unlock()
	in := s.ranges[id]
	if in == nil {
		return true
	}
	if !in.closing || in.n > 0 {
		return false
	}
	delete(s.ranges, id)
	return true
}

// Lost takes back all that a rank held which is gone; its moves, should some still arrive, are not carried out.
func (s *Server) Lost(rank int) {
	s.mu.Lock()
	defer s.unlock()
	if s.peers[rank].gone {
		return
	}
	s.peers[rank].gone = true
	var t txn
	for at := range s.slab {
		for s.slab[at].count(rank) > 0 {
			s.loseOne(rank, int32(at), &t)
		}
	}
	kept := s.late[:0]
	for _, d := range s.late {
		if d.rank != rank {
			kept = append(kept, d)
		}
	}
	s.late = kept
	s.later.Store(int32(len(kept)))
	s.overflow(&t)
	s.takeOut(&t)
}
