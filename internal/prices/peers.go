package prices

import (
	"sync/atomic"

	"gopgas/internal/selector"
)

// Peer is how far away the other end of a transfer is, and how its memory is registered: what transfers cost differs between these, so
// that what one kind of peer teaches says nothing of another.
type Peer uint8

// The kinds of peers. Buckets is added where the peer's memory is registered in buckets, which may have to be asked for.
const (
	Self    Peer = iota // this very rank
	Node                // another rank of this node
	Far                 // a rank of another node
	Buckets             // + Self, Node or Far
	peers   = 2 * Buckets
)

// learned is what transfers with each kind of peer have cost. Most programs meet one or two kinds, so each is made when it is met.
type learned [peers]atomic.Pointer[selector.Learned]

// Learned is what transfers with a kind of peer have really cost. It is the same for all who ask, whoever asks first.
func (p *Prices) Learned(of Peer) *selector.Learned {
	l := &p.learned[of]
	if l.Load() == nil {
		l.CompareAndSwap(nil, new(selector.Learned))
	}
	return l.Load()
}

// New returns prices as a selector has them, of which nothing has been learned.
func New(s *selector.Selector) *Prices { return &Prices{Selector: s, learned: new(learned)} }
