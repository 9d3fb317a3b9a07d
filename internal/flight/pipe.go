package flight

import (
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// flight is a transfer that a pipe carries out.
type flight struct {
	pipe    *superpipe.Pipe
	rank    int
	number  uint64      // see nic.Began
	h       nic.Handle  // the zero handle: somebody else's get
	lease   *rendezvous // what it has to ask for; nil: nothing
	hold    regmgr.Hold // of a source that was registered; empty: it is copied, or exposed
	get     bool
	ended   bool // the handle is done
	told    bool // of the error, if there was one
	helping *tail
}

// tail is the end of a transfer that a helper registers while its head is being copied.
type tail struct {
	hold regmgr.Hold
	done atomic.Bool
}

// Begin begins a transfer of memory that is on no stack, through a pipe. The caller has connected. The handle is done when a put's source
// is free, a get's destination full. What lies behind byte head of user's is registered by a helper meanwhile, if there is any: only memory
// whose registration stays may be helped, since the transfer may be over, and the memory its owner's again, before the helper is.
func (s *Flights) Begin(t Trip, user mem.Range, head int) (nic.Handle, error) {
	h, pipe, err := s.begin(t, user, head, superpipe.Transfer{RAddr: t.Addr, RKey: t.Key}, nil)
	if err != nil {
		return nic.Handle{}, err
	}
	// The copy of the first chunk, and its posting with the copy of the second, and so on: the wire does not wait for who polls in between.
	// The completions wake who goes on if nobody waits.
	for range firstSteps {
		pipe.Step()
	}
	return h, nil
}

// firstSteps are done before a transfer's call goes on to wait, or returns: two chunks on the wire, and one copied.
const firstSteps = 3

// enterLocked adds a flight.
func (s *Flights) enterLocked(f flight) {
	s.flights = append(s.flights, f)
	s.live.Add(1)
}

// rights are those that the NIC needs to this rank's memory.
func (t Trip) rights() transport.Access {
	if t.Get {
		return transport.LocalWrite
	}
	return 0
}

// help has the end of a transfer, from byte at on, registered while the head travels. The flight has been entered with t, so it is not
// over before this is.
func (s *Flights) help(p *superpipe.Pipe, t *tail, end mem.Range, at int, a transport.Access) {
	s.n.Go(func() {
		if s.reg.Acquire(&t.hold, regmgr.Request{Mem: end, Access: a}) == nil {
			p.Pinned(at, t.hold.LKey())
		}
		t.done.Store(true)
		s.n.Domain.Wake()
	})
}
