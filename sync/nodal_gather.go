package pgsync

import (
	"context"

	"gopgas/internal/mem"
)

// A long all-gather by nodes has each member read a share of what its node needs from others, and show it to the rest of the node.

// sharePieces is how many pieces of others a member of a node of k shows, in a team of n: its share, rounded up.
func sharePieces(n, k int) int { return (n - k + k - 1) / k }

// gatherPiece is how many bytes of each member a piece of an all-gather by nodes has. smallest is how many members the smallest node has, where
// shares are the largest.
func gatherPiece(n, smallest, payload int) int { return payload / max(1, sharePieces(n, smallest)) }

// barrierBytes is how many bytes travel to a node while members meet: 4 µs, in virtual time, a network of 100 Gbit/s.
const barrierBytes = 48 << 10

// sharesPay says whether an all-gather by nodes takes less: it saves a node of k all but one of k readings of what others have, and costs further
// turns, two for each piece.
func sharesPay(n, nodes, smallest, bytes, payload int) bool {
	k := n / nodes
	piece := gatherPiece(n, smallest, payload)
	if nodes == 1 || piece == 0 {
		return false
	}
	further := 2*((bytes+piece-1)/piece) - (bytes+payload-1)/payload
	return (k-1)*(n-k)*bytes > further*barrierBytes
}

// smallest is how many members the smallest node has.
func (t *Team) smallest() int {
	least := len(t.ranks)
	for _, members := range t.shape.Nodes {
		least = min(least, len(members))
	}
	return least
}

// gatherByNodes is gatherAll by nodes.
func (c *turns) gatherByNodes(ctx context.Context, what call, longest int, at func(m int) int, mine, all mem.Range) error {
	t := c.t
	place := places(t.shape.Nodes)
	home := t.shape.Nodes[t.shape.Mine]
	shares := make([][]int, len(home)) // whose pieces each member of this node shows
	far := 0
	for m := range t.ranks {
		if place[m].node != t.shape.Mine {
			shares[far%len(home)] = append(shares[far%len(home)], m)
			far++
		}
	}
	own := make([]bool, len(t.ranks)) // what this member reads: its node's, and its share
	for _, m := range home {
		own[m] = true
	}
	for _, m := range shares[place[t.me].at] {
		own[m] = true
	}
	return rounds(longest, 1, gatherPiece(len(t.ranks), t.smallest(), c.Payload()), func(lo, hi int) error {
		n := hi - lo
		some := func(m int) mem.Range { return all.Slice(stretch(at(m), at(m+1), lo, hi)) }
		c.Write(0, mine.Slice(stretch(0, mine.Bytes, lo, hi)))
		if err := c.turn(ctx, what, 0, visitor{}); err != nil {
			return err
		}
		err := c.ReadAll(all, func(m int) (from, to, bytes int) {
			if !own[m] {
				return 0, 0, 0
			}
			off, bytes := stretch(at(m), at(m+1), lo, hi)
			return 0, off, bytes
		})
		if err != nil {
			return err
		}
		for i, m := range shares[place[t.me].at] {
			c.Write(i*n, some(m))
		}
		if err := c.turn(ctx, what, 0, visitor{}); err != nil {
			return err
		}
		for j, mate := range home {
			for i, m := range shares[j] {
				if mate == t.me {
					break
				}
				if err := c.Read(mate, i*n, some(m)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
