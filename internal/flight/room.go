package flight

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/sched"
	"gopgas/regmgr"
	"gopgas/transport"
)

// shore is the NIC as a target's workspace sees it: that is registered under regmgr's budget, for others.
type shore struct {
	nic.Lane
	s *Flights
}

// Register implements superpipe.NIC.
func (h shore) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	key, err := h.s.reg.Lend(r, a)
	if err == nil {
		h.s.room.keep(key, r)
	}
	return key, err
}

// Deregister implements superpipe.NIC.
func (h shore) Deregister(key transport.Region) error {
	return h.s.reg.Return(key, h.s.room.drop(key))
}

// room is the registered memory of this rank that others use, as regmgr sees it: buckets that firehose has registered for them and
// that they have let go of, and workspace that is leased to nobody. When room is needed what was not used for longest goes.
type room struct {
	s       *Flights
	buckets regmgr.Victims // nil: there are none

	used atomic.Uint64 // by regmgr's clock: when the workspace was last leased

	mu   sync.Mutex
	lent map[uint64]mem.Range // by ID of the registration
}

func (r *room) keep(key transport.Region, m mem.Range) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lent == nil {
		r.lent = make(map[uint64]mem.Range)
	}
	r.lent[key.ID] = m
}

func (r *room) drop(key transport.Region) mem.Range {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.lent[key.ID]
	delete(r.lent, key.ID)
	return m
}

// idle returns when the workspace was last leased, if it is registered and nobody has a lease.
func (r *room) idle() (uses uint64, ok bool) {
	t := r.s.target
	return r.used.Load(), t != nil && t.Idle()
}

// Oldest implements regmgr.Victims.
func (r *room) Oldest() (uses uint64, ok bool) {
	uses, ok = r.idle()
	if r.buckets != nil {
		if u, some := r.buckets.Oldest(); some && (!ok || u < uses) {
			return u, true
		}
	}
	return uses, ok
}

// Shed implements regmgr.Victims.
func (r *room) Shed(bytes int64) (freed int64) {
	for freed < bytes {
		uses, ok := r.idle()
		if r.buckets != nil {
			if u, some := r.buckets.Oldest(); some && (!ok || u < uses) {
				more := r.buckets.Shed(bytes - freed)
				if freed += more; more > 0 {
					continue
				}
			}
		}
		more, err := 0, error(nil)
		if ok {
			more, err = r.s.target.Reclaim()
		}
		if more == 0 || err != nil {
			break
		}
		freed += int64(more)
	}
	return freed
}

// Drain returns when no transfer through a lease reads or writes memory that is about to be freed. Ranks that have parted have
// none, and what is left then is ended. Where ctx ends first the error says with whom there are some: the memory must not be freed.
func (s *Flights) Drain(ctx context.Context, r mem.Range) error {
	if s.target == nil || r.Bytes == 0 || len(s.users(r)) == 0 {
		return nil
	}
	if s.n.Parted() {
		for rank := range s.unequal {
			s.target.Lost(rank)
		}
		return nil
	}
	err := s.n.WaitWithin(ctx, "free", -1, func() bool { return len(s.users(r)) == 0 })
	if cause := sched.Ended(ctx); cause != nil && errors.Is(err, cause) {
		return fmt.Errorf("transfers through leases with ranks %v use the memory, so it stays: %w", s.users(r), err)
	}
	return err
}

// users returns the ranks with which transfers through leases read or write memory of r.
func (s *Flights) users(r mem.Range) []int {
	ranks := s.target.Into(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.flights {
		if v := s.flights[i].lease; v != nil && v.serves.Bytes > 0 && v.serves.Addr()-r.Addr() < uint64(r.Bytes) {
			ranks = append(ranks, s.flights[i].rank)
		}
	}
	return ranks
}
