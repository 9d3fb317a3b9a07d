package firehose

import "slices"

// execute has the Registrar do what t says, without the lock: first it deregisters, then it registers, so that at no
// instant more is registered than the budget allows. Where it is refused, unused buckets are given up for another
// try, until there are none. On an error, t.did of the fresh ones are registered.
func (s *Server) execute(t *txn) error {
	s.takeOut(t)
	s.sort(t.fresh)
	for t.did < len(t.fresh) {
		r, run := s.runAt(t.fresh[t.did:])
		pins := make([]Pin, run.Count)
		err := s.unlocked(s.reg.Register, r, run, pins)
		s.stats.RegisterCalls++
		if err == nil {
			for _, p := range pins {
				s.slab[t.fresh[t.did]].pin = p
				t.did++
			}
			s.stats.Registered += uint64(run.Count)
			s.pinned(run.Weight())
			continue
		}
		s.stats.RegisterErrors++
		if s.idle.first() < 0 {
			return err
		}
		for units := run.Weight(); units > 0 && s.idle.first() >= 0; {
			units -= s.slab[s.idle.first()].b.Weight()
			s.evict(t)
		}
		s.takeOut(t)
	}
	return nil
}

// unlocked calls the Registrar without the lock.
func (s *Server) unlocked(call func(Range, Run, []Pin) error, r Range, run Run, pins []Pin) error {
	s.away++
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.away-- }()
	return call(r, run, pins)
}

func (s *Server) pinned(units int64) {
	s.stats.Pinned += units
	s.stats.Peak = max(s.stats.Peak, s.stats.Pinned)
}

// takeOut deregisters t.out, neighbours together.
func (s *Server) takeOut(t *txn) {
	for len(t.out) > 0 {
		s.sort(t.out)
		r, run := s.runAt(t.out)
		pins := make([]Pin, run.Count)
		for i := range pins {
			pins[i] = s.slab[t.out[i]].pin
		}
		err := s.unlocked(s.reg.Deregister, r, run, pins)
		s.stats.DeregisterCalls++
		s.stats.Deregistered += uint64(run.Count)
		if err != nil {
			s.stats.DeregisterErrors++
		}
		s.pinned(-run.Weight())
		s.going -= run.Weight()
		t.outW -= run.Weight()
		for _, at := range t.out[:run.Count] {
			s.remove(at)
		}
		t.out = t.out[run.Count:]
	}
}

// sort puts buckets into ascending order, so that neighbours are next to each other.
func (s *Server) sort(places []int32) {
	slices.SortFunc(places, func(a, b int32) int {
		if s.slab[a].b < s.slab[b].b {
			return -1
		}
		return 1
	})
}

// runAt returns the first of places and its neighbours that follow it.
func (s *Server) runAt(places []int32) (Range, Run) {
	first := &s.slab[places[0]]
	run := Run{First: first.b}
	for _, at := range places {
		b := s.slab[at].b
		if b != run.At(run.Count) || run.Count > 0 && b.Index() == 0 {
			break
		}
		run.Count++
	}
	return first.in.r, run
}

// undo takes those fresh buckets out of the table that were not registered. Nobody uses them.
func (s *Server) undo(t *txn) {
	for _, at := range t.fresh[t.did:] {
		s.remove(at)
	}
	t.fresh = t.fresh[:t.did]
}

// commit ends the transit of fresh buckets. Some may have lost their use meanwhile; then something may have to go.
func (s *Server) commit(t *txn) {
	for _, at := range t.fresh {
		x := &s.slab[at]
		x.transit = false
		if x.remote == 0 && x.local == 0 {
			s.fallIdle(at, t)
		}
	}
	t.fresh, t.did = nil, 0
	s.overflow(t)
	s.takeOut(t)
}
