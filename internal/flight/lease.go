package flight

import (
	"context"
	"errors"

	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/superpipe"
	"gopgas/regmgr"
	"gopgas/transport"
)

// rendezvous is what becomes of a flight that needs a lease, or ground. Under Flights.mu.
type rendezvous struct {
	state      leaseState
	tag        uint64    // of the offer
	generation uint64    // of the lease
	serves     mem.Range // somebody else's get reads it; empty: it is this rank's put
	keyed      bool      // it needs ground, and no lease
	ground     Ground    // what it has to give back when its pipe is done, or nil
}

type leaseState uint8

const (
	leaseAsked   leaseState = iota // whoever has asked says what becomes of the flight
	leaseGranted                   // it goes on as others do
	leaseRefused                   // it has never been
)

// Lease carries a cargo through a lease. The caller has looked whether it lies in the other's memory, and of the pieces of a get whether each can be written. granted is false where there is none now: then nothing has happened. The handle is done when
// this rank's memory is its owner's again.
func (s *Flights) Lease(t Trip, c Cargo) (h nic.Handle, granted bool, err error) {
	if t.Get {
		return s.pull(t, c)
	}
	return s.pushLeased(t, c)
}

// asking is a request about a lease on its way.
type asking struct {
	nic.Kept            // the piece of the answer
	of       nic.Handle // the transfer's
}

// prepareAsking takes what a request and its transfer need; ok is false where not all of that is free now. Only who holds nothing
// may wait, and nobody may wait for a second transfer.
func (s *Flights) prepareAsking(t Trip) (a asking, ok bool, err error) {
	if err = s.n.Connect(t.Op, t.Rank); err != nil {
		return a, false, err
	}
	if a.Kept, err = s.n.Keep(t.Op, t.Rank, false, true); err != nil {
		return a, false, err
	}
	if a.of, ok = s.n.TryBegin(t.Op, t.Rank); !ok {
		s.n.Abandon(a.ID)
		s.n.PartDone(a.Handle, nil)
	}
	return a, ok, nil
}

// ReplyBytes is more than an answer, or a request without its layout, takes: its length, and an offer or a grant.
const ReplyBytes = 64

// answer sends a request and waits for its answer, whose first byte says how long it is; 0: not now. sent is false where the target never
// learns of the request.
func (s *Flights) answer(t Trip, a asking, k Kind, c Cargo, payload []byte) (reply []byte, sent bool, err error) {
	args := [4]uint64{t.Key, t.Addr, uint64(c.Span)}
	if err = s.n.Ask(t.Op, a.ID, s.first+uint8(k), args, mem.Of(append(payload, c.Layout...))); err != nil {
		s.n.PartDone(a.Handle, nil)
		return nil, false, err
	}
	err = a.Wait(context.Background())
	buf, _ := s.n.Buffer(a.ID, ReplyBytes)
	if words := buf.Data(); err == nil && words[0] > 0 {
		reply = append(reply, words[1:min(ReplyBytes, 1+int(words[0]))]...)
	}
	s.n.Give(a.ID)
	return reply, true, err
}

// pushLeased is lease for a put, into a lease of the target's workspace.
func (s *Flights) pushLeased(t Trip, c Cargo) (h nic.Handle, granted bool, err error) {
	a, ok, err := s.prepareAsking(t)
	if !ok {
		return h, false, err
	}
	v := &rendezvous{}
	pipe, err := s.flyLeased(s.known(superpipe.Transfer{
		Rank: t.Rank, EP: transport.EP{Index: uint32(t.Rank)}, Local: c.Near, Spread: c.Spread, Lease: true,
	}), a.of, v)
	if pipe == nil {
		s.n.Abandon(a.ID)
		s.n.PartDone(a.Handle, nil)
		s.n.PartDone(a.of, nil)
		return h, false, transport.NewOpError(t.Op, t.Rank, err)
	}
	pipe.Step() // the first chunk is copied while the request is on its way
	offer := pipe.Offer()
	reply, sent, err := s.answer(t, a, ToPut, c, offer.Append(make([]byte, 0, ReplyBytes)))
	var g superpipe.Grant
	if err == nil && reply != nil {
		g, _, err = superpipe.ParseGrant(reply)
	}
	var unfit error
	if err == nil && reply != nil {
		unfit = pipe.Granted(g)
		granted = unfit == nil
	}
	if granted {
		s.mu.Lock()
		v.state, v.generation = leaseGranted, g.Generation
		s.mu.Unlock()
		s.flying.Add(1)
		pipe.Step()
		s.n.Domain.Wake()
		return a.of, true, nil
	}
	if errors.Is(unfit, superpipe.ErrGrant) {
		s.unequal[t.Rank].Store(true)
	} else if unfit != nil {
		err = transport.NewOpError(t.Op, t.Rank, unfit)
	}
	if unfit != nil || sent && err != nil {
		s.tell(note{kind: noteReturn, rank: t.Rank, generation: g.Generation, tag: offer.Tag, place: -1})
	}
	pipe.Fail(errNoLease)
	s.mu.Lock()
	v.state = leaseRefused
	s.mu.Unlock()
	pipe.Step()
	if werr := a.of.Wait(context.Background()); err == nil {
		err = werr
	}
	return h, false, err
}

var errNoLease = errors.New("the target has no lease now")

// held is a transfer and what keeps its source registered, if that is: then the NIC takes it from where it lies.
type held struct {
	superpipe.Transfer
	hold regmgr.Hold
}

// known is a transfer whose source is perhaps registered: the program has used it before.
func (s *Flights) known(tr superpipe.Transfer) (h held) {
	h.Transfer = tr
	if s.gathers && tr.Spread == nil && s.reg.Borrow(&h.hold, tr.Local) {
		h.Registered, h.LKey = true, h.hold.LKey()
	}
	return h
}

// flyLeased enters a pipe that needs a lease; it is nil while there is none to be had.
func (s *Flights) flyLeased(tr held, h nic.Handle, v *rendezvous) (*superpipe.Pipe, error) {
	pipe, err := s.tryFly(tr, h, v)
	if pipe == nil && tr.hold.Region() != nil {
		s.reg.Release(&tr.hold)
	}
	return pipe, err
}

// tryFly is flyLeased but for what keeps the source registered if there is no pipe.
func (s *Flights) tryFly(tr held, h nic.Handle, v *rendezvous) (*superpipe.Pipe, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pipe, ok, err := s.origin.Begin(tr.Transfer)
	if !ok {
		return nil, err
	}
	v.tag = pipe.Offer().Tag
	f := flight{pipe: pipe, h: h, rank: tr.Rank, lease: v, hold: tr.hold}
	if v.serves.Bytes == 0 {
		f.number = s.n.Began(tr.Rank)
	}
	s.enterLocked(f)
	return pipe, nil
}

// pull is lease for a get, into a lease of this rank's own workspace, into which the owner puts.
func (s *Flights) pull(t Trip, c Cargo) (h nic.Handle, granted bool, err error) {
	if c.Spread == nil { // what lies between pieces may be read-only
		if err := s.reg.Destination(c.Near); err != nil { // who copies later could not tell
			return h, false, transport.NewOpError(t.Op, t.Rank, err)
		}
	}
	a, ok, err := s.prepareAsking(t)
	if !ok {
		return h, false, err
	}
	g, ok := s.expect(t.Rank, c)
	if !ok {
		s.n.Abandon(a.ID)
		s.n.PartDone(a.Handle, nil)
		s.n.PartDone(a.of, nil)
		return h, false, nil
	}
	s.mu.Lock()
	p := pull{t.Rank, g, a.of, s.n.Began(t.Rank)}
	s.pulls = append(s.pulls, p)
	s.pulling.Add(1)
	s.mu.Unlock()
	reply, sent, err := s.answer(t, a, ToGet, c, g.Append(make([]byte, 0, ReplyBytes)))
	if err == nil && reply != nil {
		var o superpipe.Offer
		if o, _, err = superpipe.ParseOffer(reply); err == nil && s.target.Offered(g, o) {
			s.n.Domain.Wake()
			return a.of, true, nil
		}
		err = errors.Join(err, superpipe.ErrMalformed)
	}
	if sent && err != nil && !errors.Is(err, nic.ErrRefused) {
		// The owner may be at it all the same, and put into this rank's slots until he has stopped; nothing goes on from there.
		s.tell(note{kind: noteStop, rank: t.Rank, generation: g.Generation, place: -1})
		s.target.Stop(g)
		s.pulled(p, nil)
		_ = a.of.Wait(context.Background()) // it is over
		return h, false, err
	}
	s.target.Return(t.Rank, g.Generation, 0)
	s.pulled(p, nil)
	_ = a.of.Wait(context.Background())
	return h, false, err
}

// expect leases this rank's own workspace to a rank that is to put a cargo there.
func (s *Flights) expect(rank int, c Cargo) (superpipe.Grant, bool) {
	if !s.Ready() {
		return superpipe.Grant{}, false
	}
	return s.target.ExpectSpread(rank, transport.EP{Index: uint32(rank)}, c.Near, c.Spread)
}

// Ready registers the workspace if it is not, and notes that it is used. It may take long, so it is called before a request of the Kind ToPut
// is served, and under no lock.
func (s *Flights) Ready() bool {
	if s.target == nil {
		return false
	}
	s.room.used.Store(s.reg.Uses())
	err := s.target.Prepare()
	if err != nil {
		s.unready.Add(1)
		s.why.CompareAndSwap(nil, &err)
	}
	return err == nil
}
