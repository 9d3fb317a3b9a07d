package proto

import (
	"errors"
	"sync"

	"gopgas/internal/card"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// Peeker is implemented by mappers that read memory which a peer has not exposed: of is the token of something that it has.
type Peeker interface {
	Peek(of transport.Token, addr uint64, dst mem.Range) error
}

// peeked is whose memory this rank can read where it lies, without having mapped it.
type peeked struct {
	mu    sync.RWMutex
	ranks map[int]*reader
}

// reader is the way to one rank's memory.
type reader struct {
	token  transport.Token // of something that it had when it was met: it says which process it is
	tried  sync.Once
	denied error
}

// meet notes the ranks of xp, unless they are known.
func (p *peeked) meet(xp *Exposure, cards []card.Card) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ranks == nil {
		p.ranks = map[int]*reader{}
	}
	for m, r := range xp.Of {
		if p.ranks[r.Rank] == nil && r.Bytes > 0 {
			p.ranks[r.Rank] = &reader{token: cards[m].Token}
		}
	}
}

// of returns the way to a rank's memory, or nil.
func (p *peeked) of(rank int) *reader {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.ranks[rank]
}

// Peeks returns an error if this rank cannot read memory of the ranks of peers which it has not mapped. It finds out by trying, once, with a word of what each exposes there.
func (e *Engine) Peeks(peers []Remote) error {
	p, ok := e.mapper.(Peeker)
	if !ok {
		return transport.ErrUnsupported
	}
	for i := range peers {
		of := &peers[i]
		if of.Rank == e.Rank {
			continue
		}
		r := e.peeked.of(of.Rank)
		if r == nil {
			return transport.ErrUnsupported
		}
		r.tried.Do(func() {
			var word [1]uint64
			r.denied = p.Peek(r.token, of.raddr, mem.Of(word[:]))
		})
		if r.denied != nil {
			return r.denied
		}
	}
	return nil
}

// OfferPeeked has o offer r, until Withdraw, to those who Peek, and reports whether it does: if r is of the Go heap, which stays where it is and can be read. A stack
// moves, and a mapping may be a device's.
func (e *Engine) OfferPeeked(o *Offer, r mem.Range) bool {
	if mem.OriginOf(r) != mem.Heap {
		return false
	}
	o.Addr, o.kept = r.Addr(), r
	return true
}

// OfferedPeeked is how this rank reaches what another one offers to those who Peek. Who fetches from it knows its length.
func (e *Engine) OfferedPeeked(rank int, addr uint64) Remote {
	return Remote{Rank: rank, Bytes: 1 << 46, raddr: addr, peeked: true}
}

// peek copies from byte off of such memory to dst: one copy of the kernel's.
func (e *Engine) peek(r *Remote, off int, dst mem.Range) error {
	if err := e.mapper.(Peeker).Peek(e.peeked.of(r.Rank).token, r.raddr+uint64(off), dst); err != nil {
		if gone := e.Peers.Check(r.Rank); gone != nil {
			err = errors.Join(gone, err)
		}
		return transport.NewOpError("get", r.Rank, err)
	}
	e.counts.add(PathKernel, r.Rank, dst.Bytes)
	return nil
}
