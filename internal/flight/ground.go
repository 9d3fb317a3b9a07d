package flight

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// Ground is a stretch of another rank's memory that has a key for each of its parts, of which the right to use them has to be asked for:
// buckets, and firehoses on them.
type Ground interface {
	// Key returns what opens byte at of the stretch, and up to which byte it does. It waits for nothing, and is called under a pipe's lock.
	Key(at int) (key uint64, end int)
	// Ask begins to ask. It waits for nothing, and is called once.
	Ask()
	// Wait returns when all of it is there, or is not to be had, or why nobody can tell. What it waits for must not be the end of a flight
	// that waits for something too.
	Wait() (ok bool, err error)
	// Release gives back what Wait has said is there, when nothing uses it any more. It waits for nothing.
	Release()
}

// BeginOn is Begin for a stretch of memory that has to be asked for, which takes about so many seconds; 0: it is there, as far as is
// known. The first chunks of a put are copied meanwhile. granted is false where it is not to be had: then nothing has happened. It waits
// for the answer.
func (s *Flights) BeginOn(t Trip, user mem.Range, head int, behind float64, g Ground) (h nic.Handle, granted bool, err error) {
	v := &rendezvous{keyed: true}
	h, pipe, err := s.begin(t, user, head, superpipe.Transfer{Behind: behind, Keys: g}, v)
	if err != nil {
		return h, false, err
	}
	g.Ask() // by who has all else that the transfer needs, so that whoever has the ground comes to its end
	pipe.Step()
	ok, err := g.Wait()
	if !ok {
		pipe.Fail(errNoGround)
		s.mu.Lock()
		v.state = leaseRefused
		s.mu.Unlock()
		pipe.Step()
		if werr := h.Wait(context.Background()); err == nil {
			err = werr
		}
		return nic.Handle{}, false, err
	}
	pipe.Reach(t.Addr, 0) // before the flight can land, and the pipe be another's
	s.mu.Lock()
	v.state, v.ground = leaseGranted, g
	s.mu.Unlock()
	pipe.Step()
	s.n.Domain.Wake() // nobody may have had anything to wait for
	return h, true, nil
}

var errNoGround = errors.New("the target's memory is not to be had")

// begin enters a flight, with its first chunk not copied yet. tr lacks what t and user say. v is what it has to wait for, or nil.
func (s *Flights) begin(t Trip, user mem.Range, head int, tr superpipe.Transfer, v *rendezvous) (h nic.Handle, pipe *superpipe.Pipe, err error) {
	if t.Get { // who copies later could not tell
		if err := s.reg.Destination(user); err != nil {
			return nic.Handle{}, nil, transport.NewOpError(t.Op, t.Rank, err)
		}
	} else {
		s.origin.Approach(user) // while the transfer is entered and cut
	}
	if h, err = s.n.Begin(t.Op, t.Rank); err != nil {
		return nic.Handle{}, nil, err
	}
	tr.Get, tr.Rank, tr.EP, tr.Local = t.Get, t.Rank, transport.EP{Index: uint32(t.Rank)}, user
	f := flight{rank: t.Rank, h: h, get: t.Get, lease: v}
	if 0 < head && head < user.Bytes {
		f.helping = new(tail)
	}
	ok := false
	var refused error
	// The pipe is entered where it is made, so that nobody flushes in between.
	try := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.pipe, ok, refused = s.origin.Begin(tr); !ok {
			return refused != nil
		}
		f.number = s.n.Began(t.Rank)
		s.enterLocked(f)
		return true
	}
	if !try() {
		err = s.n.WaitUntil(t.Op, t.Rank, try)
	}
	if err == nil && refused != nil {
		err = transport.NewOpError(t.Op, t.Rank, refused)
	}
	if !ok {
		s.n.PartDone(h, nil)
		return nic.Handle{}, nil, err
	}
	if f.helping != nil {
		s.help(f.pipe, f.helping, user.Slice(head, user.Bytes-head), head, t.rights())
	}
	return h, f.pipe, nil
}
