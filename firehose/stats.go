package firehose

// HolderStats counts what a Holder's requests met.
type HolderStats struct {
	Hits     uint64 // requests that were Ready at once
	Joins    uint64 // that waited for other requests' moves only
	Misses   uint64 // that took a move of their own
	Blocked  uint64 // that had to wait for firehoses in use; they count again above
	Refusals uint64 // moves that were not granted

	Ahead    uint64 // moves made before a use that was predicted
	Foreseen uint64 // uses of their buckets that would have missed
	Late     uint64 // uses that came before the answer, and waited for it
	Wasted   uint64 // buckets that were given up before any use

	Units int64 // charged to all shares now

	BucketHits, BucketMisses uint64 // the same by bucket
	Moves                    uint64 // firehoses taken off a bucket for another
	Sheds                    uint64 // messages that only gave up
	Orders                   uint64 // changes of a range's bucket size
}

// Stats returns the counts so far.
func (h *Holder) Stats() HolderStats {
	s := h.stats
	for i := range h.peers {
		s.Units += h.peers[i].used
		s.Wasted += h.peers[i].wasted
	}
	return s
}

// Used returns what is charged to this rank's share of a peer, in units.
func (h *Holder) Used(rank int) int64 { return h.peers[rank].used }

// ServerStats counts what a Server did. Its sizes are in units.
type ServerStats struct {
	Moves       uint64 // answered
	Deferred    uint64 // of these, after a wait for somebody else's registration
	Refused     uint64 // not granted, for whatever reason
	Resurrected uint64 // buckets asked for that were still registered though unused
	Shared      uint64 // that were in use already
	Victims     uint64 // buckets of which nobody had a use any more

	Registered, RegisterCalls     uint64 // buckets, and calls of the Registrar
	Deregistered, DeregisterCalls uint64
	RegisterErrors                uint64
	DeregisterErrors              uint64

	Pinned, Peak int64 // units registered now, and at most
	Own          int64 // of these, what is charged to the owner's part
	Idle         int64 // of those, used by nobody
}

// Stats returns the counts so far.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Own, s.stats.Idle = s.own, s.idleW
	return s.stats
}
