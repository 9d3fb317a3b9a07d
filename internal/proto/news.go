package proto

import (
	"gopgas/internal/am"
	"gopgas/internal/hose"
	"gopgas/internal/peers"
)

// How a rank learns from its NIC that another one has ended, and what it does then.

// spread tells every other rank who is gone: only those that were connected to a rank hear of its end from the NIC.
// It posts and may wait, for a connection that is being made for instance, perhaps by the very goroutine whose wait has polled:
// so it runs beside.
func (n *nic) spread() {
	defer n.menders.Add(-1)
	n.news.Store(false)
	n.tellAll()
	n.spreading.Store(false)
	if n.news.Load() {
		n.d.Wake() // somebody looks once more
	}
}

func (n *nic) tellAll() {
	p := n.e.Peers
	first := p.First()
	for dead := range n.e.Size {
		c := p.Cause(dead)
		if c == 0 {
			continue
		}
		for r := range n.e.blocks {
			to := &n.e.blocks[r]
			if r == n.e.Rank || to.Mapped.Bytes != 0 || p.Cause(r) != 0 {
				continue
			}
			if n.store64("tell", to, peers.GoneOff(dead), uint64(c)) == nil {
				_ = n.store64("tell", to, peers.FirstOff, first) // whoever cannot be told will find out for itself
			}
		}
	}
}

// lost records that rank is gone, and leaves the telling to the next one who polls.
func (n *nic) lost(rank int) {
	if n.e.Peers.MarkGone(rank, peers.Silent) {
		n.news.Store(true)
	}
	n.giveUp(rank, n.e.Peers.Check(rank))
}

// giveUp ends the requests to a rank with err: no answer will come.
func (n *nic) giveUp(rank int, err error) {
	gone := n.e.Peers.Check(rank) != nil
	switch {
	case n.bulk.origin == nil:
	case gone:
		n.bulk.origin.Lost(rank, err)
		n.leases.lost(rank)
	default:
		n.bulk.origin.Abort(rank, err)
	}
	if n.am == nil {
		return
	}
	var hoses []uint64
	for _, id := range n.am.Lost(rank) {
		if id&noteCookie != 0 {
			n.leases.answered(am.Reply{Cookie: id}, err)
			continue
		}
		if id&hose.Cookie != 0 {
			hoses = append(hoses, id)
			continue
		}
		n.ends[rank].asked.Add(-1)
		n.settle(int32(id), err)
	}
	switch {
	case n.hoses == nil:
	case gone:
		n.hoses.Lost(rank)
	default:
		n.hoses.End(rank, hoses, err)
	}
}
