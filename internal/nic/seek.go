package nic

import (
	"context"
	"errors"
	"time"

	"gopgas/transport"
)

// A connection that ends for no death is made again by the next operation, which finds out whether the peer lives. A rank that only waits has none: who puts into
// its memory, or is to ring its bell, may end a second later and nobody tells it. So while a wait lasts connections that have ended so are made again.

// rejoiner is implemented by domains whose connections may end so.
type rejoiner interface {
	// Rejoin makes the connection with rank peer again where it has ended without a word on whether the peer lives, whoever had made it, and does nothing else: it
	// connects with nobody new. addr is what the peer has published, nil where that has not come. Its error wraps transport.ErrPeerGone where nobody is there any more. It
	// may wait for as long as Connect does, and is called by one goroutine at a time.
	Rejoin(ctx context.Context, peer int, addr []byte) error
}

// seekPause is between two looks at what this rank waits for. A wait as long is worth a connection.
const seekPause = time.Second

// seek has the domain make connections again with those for whom this rank waits, until the NIC is closed.
func (n *NIC) seek(d rejoiner) {
	l := look{named: make([]bool, len(n.ends))}
	for n.sched.Sleep(n.ctx, n.between) == nil {
		for _, rank := range l.at(n) {
			if n.ctx.Err() != nil {
				return
			}
			if n.peers.Check(rank) != nil {
				continue
			}
			if err := d.Rejoin(n.ctx, rank, n.address(rank)); errors.Is(err, transport.ErrPeerGone) {
				_ = n.connectError(rank, err) // has the word spread; the waits learn it from the table of peers
			}
		}
	}
}

// look is what a look at the waits needs: beside a program that allocates nothing, nothing does.
type look struct {
	awaited, ranks []int
	named          []bool
}

// at returns the ranks that some wait is for.
func (l *look) at(n *NIC) []int {
	l.awaited = n.sched.Awaited(l.awaited[:0], n.between)
	l.ranks = sought(l.ranks[:0], l.awaited, l.named, n.rank)
	return l.ranks
}

// sought appends the ranks, without me, that some wait is for: of those that are awaited a negative one stands for all. named has a place for each rank.
func sought(ranks, awaited []int, named []bool, me int) []int {
	clear(named)
	for _, r := range awaited {
		switch {
		case r >= len(named):
		case r >= 0:
			named[r] = true
		default:
			for i := range named {
				named[i] = true
			}
		}
	}
	for r, is := range named {
		if is && r != me {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
