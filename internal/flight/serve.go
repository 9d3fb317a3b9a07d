package flight

import (
	"gopgas/internal/am"
	"gopgas/internal/mem"
	"gopgas/internal/nic"
	"gopgas/internal/spread"
	"gopgas/internal/superpipe"
	"gopgas/transport"
)

// Kind is what a request about leases asks for.
type Kind uint8

// Kinds of requests. Each is answered by its length and what is said here, or by nothing.
const (
	ToPut    Kind = iota // args: key, address, bytes; payload: a superpipe.Offer, the layout of pieces. A superpipe.Grant; 0: not now
	ToGet                // args: key, address, bytes; payload: a superpipe.Grant, the layout of pieces. A superpipe.Offer; 0: not now
	ToReturn             // args: generation, tag: the receiver has its lease back. 1, or 0: ask again
	ToStop               // args: generation: no more into this lease of the sender's. 1: it will be returned, or 0
	Kinds
)

// Serve is the handler of requests for leases of this rank's workspace (ToPut) and for puts into the asker's (ToGet). part is
// the memory that they are about. It returns how long the answer is; false: no rank of this program would ask so. It runs in the poller.
func (s *Flights) Serve(k Kind, r am.Request, part mem.Range, out []byte) (int, bool) {
	out[0] = 0
	if r.From < 0 || r.From >= len(s.unequal) {
		return 0, false
	}
	if s.target == nil || len(out) < ReplyBytes || part.Bytes == 0 {
		return 1, true
	}
	if k == ToGet {
		return s.give(r, part, out)
	}
	o, layout, err := superpipe.ParseOffer(r.Payload)
	if err != nil {
		return 0, false
	}
	pieces, err := piecesOf(part, layout)
	if err != nil {
		return 0, false
	}
	if g, ok := s.target.LeaseSpread(r.From, transport.EP{Index: uint32(r.From)}, o, part, pieces); ok {
		out[0] = uint8(len(g.Append(out[1:1])))
		s.n.Domain.Wake() // somebody has to look for what arrives
	}
	return 1 + int(out[0]), true
}

// Exposed says by which key this rank's NIC reads exposed memory that is registered as a whole, and that peers name by key.RKey. Withdrawn ends that,
// and Drain what has begun.
func (s *Flights) Exposed(key transport.Region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lkeys == nil {
		s.lkeys = make(map[uint64]uint64)
	}
	s.lkeys[key.RKey] = key.LKey
}

// Withdrawn is Exposed's inverse.
func (s *Flights) Withdrawn(rkey uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lkeys, rkey)
}

func (s *Flights) exposed(rkey uint64) (lkey uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lkey, ok = s.lkeys[rkey]
	return lkey, ok
}

// piecesOf are the pieces of part that a layout tells; nil where there is none: all of it.
func piecesOf(part mem.Range, layout []byte) (*spread.Spread, error) {
	if len(layout) == 0 {
		return nil, nil
	}
	return spread.Parse(layout, part)
}

// give begins to put part into workspace of the asker's.
func (s *Flights) give(r am.Request, part mem.Range, out []byte) (int, bool) {
	g, layout, err := superpipe.ParseGrant(r.Payload)
	if err != nil {
		return 0, false
	}
	pieces, err := piecesOf(part, layout)
	if err != nil {
		return 0, false
	}
	v := &rendezvous{state: leaseGranted, generation: g.Generation, serves: part}
	tr := superpipe.Transfer{Rank: r.From, EP: transport.EP{Index: uint32(r.From)}, Local: part, Spread: pieces, Lease: true}
	source := held{Transfer: tr}
	if lkey, ok := s.exposed(r.Args[0]); ok && pieces == nil && s.gathers {
		source.Registered, source.LKey = true, lkey // who takes it back drains it first
	} else {
		source = s.known(tr)
	}
	pipe, err := s.flyLeased(source, nic.Handle{}, v)
	if pipe == nil || err != nil {
		return 1, true
	}
	if pipe.Granted(g) != nil {
		s.mu.Lock()
		v.state = leaseRefused
		s.mu.Unlock()
		pipe.Step()
		return 1, true
	}
	s.flying.Add(1)
	o := pipe.Offer()
	out[0] = uint8(len(o.Append(out[1:1])))
	s.n.Domain.Wake()
	return 1 + int(out[0]), true
}
