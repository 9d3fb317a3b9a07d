package firehose

// gain gives rank a firehose on each bucket.
func (s *Server) gain(rank int, runs []Run, t *txn) {
	for _, run := range runs {
		s.ranges[run.First.Range()].order = run.First.Order()
		for i := range run.Count {
			b := run.At(i)
			at := s.at.find(b)
			switch {
			case at < 0:
				at = s.add(b)
				s.slab[at].transit = true
				t.fresh = append(t.fresh, at)
			case s.slab[at].remote == 0 && s.slab[at].local == 0:
				s.leaveIdle(at)
				s.own -= b.Weight()
				s.stats.Resurrected++
			default:
				s.stats.Shared++
			}
			s.slab[at].note(rank, 1)
		}
		s.peers[rank].held += run.Weight()
	}
}

// lose takes rank's firehoses off the buckets.
func (s *Server) lose(rank int, runs []Run, t *txn) {
	for _, run := range runs {
		for i := range run.Count {
			s.loseOne(rank, s.at.find(run.At(i)), t)
		}
	}
}

func (s *Server) loseOne(rank int, at int32, t *txn) {
	x := &s.slab[at]
	x.note(rank, -1)
	s.peers[rank].held -= x.b.Weight()
	if x.remote == 0 && x.local == 0 {
		s.own += x.b.Weight()
		s.fallIdle(at, t)
	}
}

// fallIdle decides what becomes of a bucket without any use, which is charged to the owner.
func (s *Server) fallIdle(at int32, t *txn) {
	switch x := &s.slab[at]; {
	case x.transit: // whoever is at it will see
	case x.in.closing:
		s.expel(at, t)
	default:
		s.stats.Victims++
		x.since = s.age()
		s.idle.push(at)
		s.idleW += x.b.Weight()
	}
}

func (s *Server) leaveIdle(at int32) {
	s.idle.remove(at)
	s.idleW -= s.slab[at].b.Weight()
}

// expel has a bucket deregistered. It stays charged until it is.
func (s *Server) expel(at int32, t *txn) {
	x := &s.slab[at]
	x.transit, x.leaving = true, true
	s.going += x.b.Weight()
	t.outW += x.b.Weight()
	t.out = append(t.out, at)
}

// overflow has unused buckets deregistered, oldest first, until the owner's part is within its limit. What other calls are
// deregistering does not count as gone yet.
func (s *Server) overflow(t *txn) {
	for s.own-t.outW > s.limit && s.idle.first() >= 0 {
		s.evict(t)
	}
}

func (s *Server) evict(t *txn) {
	at := s.idle.first()
	s.leaveIdle(at)
	s.expel(at, t)
}

// add enters a bucket, which is not in the table.
func (s *Server) add(b Bucket) (at int32) {
	in := s.ranges[b.Range()]
	in.n++
	if n := len(s.free); n > 0 {
		at = s.free[n-1]
		s.free = s.free[:n-1]
		s.slab[at] = bucket{b: b, in: in}
	} else {
		at = int32(len(s.slab))
		s.slab = append(s.slab, bucket{b: b, in: in})
	}
	s.at.insert(b, at)
	return at
}

// remove takes a bucket, which has no use and is in no chain, out of the table. An empty table takes no memory.
func (s *Server) remove(at int32) {
	x := &s.slab[at]
	s.own -= x.b.Weight()
	x.in.n--
	s.at.remove(x.b)
	*x = bucket{}
	s.free = append(s.free, at)
	if s.at.n == 0 {
		s.slab, s.free, s.idle = nil, nil, chain{}
	}
}

// unlock ends a call. It lets the table shrink unless another call, whose Registrar is at work, knows places in it.
func (s *Server) unlock() {
	s.recount()
	if s.away == 0 && sparse(s.at.n, len(s.slab)) {
		s.slab, s.free = together(s.slab, &s.at, &s.idle, func(x *bucket) (Bucket, bool) { return x.b, x.in != nil }), nil
	}
	s.mu.Unlock()
}

// of returns rank's entry, and nil if it has no firehose on the bucket.
func (x *bucket) of(rank int) *holding {
	if x.holder.count != 0 && x.holder.rank == int32(rank) {
		return &x.holder
	}
	for i := range x.others {
		if x.others[i].rank == int32(rank) {
			return &x.others[i]
		}
	}
	return nil
}

// count returns how many firehoses rank has on the bucket.
func (x *bucket) count(rank int) int32 {
	if h := x.of(rank); h != nil {
		return h.count
	}
	return 0
}

// note adds n to rank's firehoses on the bucket.
func (x *bucket) note(rank int, n int32) {
	x.remote += n
	h := x.of(rank)
	switch {
	case h == nil && x.holder.count == 0:
		x.holder = holding{int32(rank), n}
	case h == nil:
		x.others = append(x.others, holding{int32(rank), n})
	default:
		h.count += n
		if h.count == 0 && h != &x.holder {
			*h = x.others[len(x.others)-1]
			x.others = x.others[:len(x.others)-1]
		}
	}
}
