package pgsync

import (
	"context"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/shape"
)

// Data of which each member has a part of its own, by nodes: what is for a node, or comes from it, travels between nodes in one piece. Parts are
// laid out by nodes there: those of a node's members one behind the other, in the order of the node.

// parts says where parts lie, one behind the other, by nodes.
type parts struct {
	off  []int // of each member's, from the beginning of its node's
	node []int // the bytes of each node's
	at   func(m int) int
}

// partsOf lays out parts, of which member m's goes from at(m) to at(m+1).
func partsOf(nodes [][]int, n int, at func(m int) int) parts {
	l := parts{off: make([]int, n), node: make([]int, len(nodes)), at: at}
	for i, members := range nodes {
		for _, m := range members {
			l.off[m] = l.node[i]
			l.node[i] += at(m+1) - at(m)
		}
	}
	return l
}

func (l *parts) bytes(m int) int { return l.at(m+1) - l.at(m) }

// widest is the most that any node has.
func (l *parts) widest() (most int) {
	for _, n := range l.node {
		most = max(most, n)
	}
	return most
}

// throughLeaders says whether parts go through the first members of nodes (gather and scatter by clusters: Kielmann et al. 1999): it costs no barrier more,
// and saves all messages but one for each other node. A first member's outbox needs room for its whole node. (In virtual time, as below: a gather of 8 bytes
// from 64 ranks on 8 nodes takes 5.4 µs instead of 11.3.)
func throughLeaders(nodes, widest, payload int) bool { return nodes > 1 && widest <= payload }

// Collected says whether GatherParts and ScatterParts can move parts, of which member m's goes from at(m) to at(m+1).
func (c *turns) Collected(at func(m int) int) bool {
	t := c.t
	if !t.shape.Levels() {
		return false
	}
	l := partsOf(t.shape.Nodes, len(t.ranks), at)
	return throughLeaders(len(t.shape.Nodes), l.widest(), c.Payload())
}

// Dealt says whether ScatterParts should move parts of a scatter, likewise.
func (c *turns) Dealt(at func(m int) int) bool {
	return (c.t.e.Busy() || len(c.t.ranks) > mostRead) && c.Collected(at)
}

// mostRead is how many members read their parts from root, behind the barrier, sooner than they come through the first members of nodes, which read within it: each
// read is as long on its way, and what it takes root's NIC is less than a phase of the barrier, unless the NIC is a program. (In virtual time, as below: a
// scatter of 8 bytes to 32 ranks on 4 nodes takes 4.2 µs, and 5.8 by nodes, to 64 on 8 nodes 5.9 and 7.0, to 128 on 16 nodes 8.4 and 8.0.)
const mostRead = 64

// Nodes is how many nodes the members are on, as far as that makes a difference: 1 where they are all alike.
func (c *turns) Nodes() int { return len(c.t.shape.Nodes) }

// GatherParts is a gather to root in one turn, in which the first member of each node collects what its node has, in its outbox behind its own, when the
// node has met, and root reads that: a message for each other node. Collected must hold. all is not looked at elsewhere.
func (c *turns) GatherParts(ctx context.Context, elem, n, root int, at func(m int) int, mine, all mem.Range) error {
	t := c.t
	nodes := t.shape.Nodes
	l, home := partsOf(nodes, len(t.ranks), at), t.shape.NodeOf(root)
	c.Write(0, mine)
	v := visitor{begin: func(p *shape.Phase) error {
		if p.Area != shape.Leaders || home == t.shape.Mine {
			return nil
		}
		for _, m := range nodes[t.shape.Mine][1:] {
			if l.bytes(m) == 0 {
				continue
			}
			if err := c.fetch(m, 0, l.off[m], l.bytes(m)); err != nil {
				return err
			}
		}
		return nil
	}}
	if err := c.turn(ctx, callOf(c.op, elem, 0, n), root, v); err != nil || t.me != root {
		return err
	}
	into, begin := all, make([]int, len(nodes)) // where what a node has goes
	straight := t.shape.InOrder()
	if straight {
		for i, members := range nodes {
			begin[i] = at(members[0])
		}
	} else {
		into = mem.Of(make([]byte, all.Bytes))
		for i := 1; i < len(nodes); i++ {
			begin[i] = begin[i-1] + l.node[i-1]
		}
	}
	place := places(nodes)
	err := c.ReadAll(into, func(m int) (from, to, bytes int) {
		switch i := place[m].node; {
		case i == home:
			return 0, begin[i] + l.off[m], l.bytes(m)
		case place[m].at == 0:
			return 0, begin[i], l.node[i]
		}
		return 0, 0, 0
	})
	if err != nil || straight {
		return err
	}
	for m := range t.ranks {
		mem.Copy(all.Slice(at(m), l.bytes(m)).Data(), into.Slice(begin[place[m].node]+l.off[m], l.bytes(m)).Data())
	}
	t.e.Sched.ChargeCopy(all.Bytes, all.Bytes)
	return nil
}

// ScatterParts is a scatter of root's src in one turn: what is for another node goes to its first member in one piece, from whose outbox the others of
// the node read. If all of src fits into an outbox that one reads it there, when all nodes have met; else root puts it there, before. Collected must hold.
// src is not looked at elsewhere.
func (c *turns) ScatterParts(ctx context.Context, elem, n, root int, at func(m int) int, dst, src mem.Range) error {
	t := c.t
	nodes, all := t.shape.Nodes, len(t.ranks)
	l, home, place := partsOf(nodes, all, at), t.shape.NodeOf(root), places(t.shape.Nodes)
	begin := make([]int, len(nodes)) // in root's outbox
	for i := 1; i < len(nodes); i++ {
		begin[i] = begin[i-1] + l.node[i-1]
	}
	pulled := at(all) <= c.Payload()
	var v visitor
	if pulled {
		if t.me == root {
			for m := range all {
				c.Write(begin[place[m].node]+l.off[m], src.Slice(at(m), l.bytes(m)))
			}
		}
		v.begin = func(p *shape.Phase) error {
			if p.Area != shape.Release || t.shape.Leader() != t.me || home == t.shape.Mine || l.node[t.shape.Mine] == 0 {
				return nil
			}
			return c.fetch(root, begin[t.shape.Mine], 0, l.node[t.shape.Mine]) // root's node has met, and told this one
		}
	} else if t.me == root {
		err := c.pushParts(ctx, src, func(m int) (to, off int) {
			if place[m].node == home {
				return m, 0
			}
			return nodes[place[m].node][0], l.off[m]
		}, &l)
		if err != nil {
			return err
		}
	}
	if err := c.turn(ctx, callOf(c.op, elem, 0, n), root, v); err != nil || dst.Bytes == 0 {
		return err
	}
	switch leader := t.shape.Leader(); {
	case t.me == root:
		mem.Copy(dst.Data(), src.Slice(at(root), dst.Bytes).Data())
		return nil
	case home == t.shape.Mine && pulled:
		return c.Read(root, begin[home]+l.off[t.me], dst)
	case home == t.shape.Mine || leader == t.me:
		return c.Take(root, dst)
	default:
		return c.Read(leader, l.off[t.me], dst)
	}
}

// pushParts is PushAll of the parts of the other members, each into the outbox that of says, from byte off on; what lies next to each other there, too, travels as
// one.
func (c *turns) pushParts(ctx context.Context, src mem.Range, of func(m int) (to, off int), l *parts) error {
	t := c.t
	n, box := len(t.ranks), c.box()+outboxHeader
	err := t.e.PutRuns(c.op, n, func(m int) proto.Run {
		to, off := of(m)
		r := proto.Run{To: &t.peers[to], Far: box + off, Near: l.at(m), Bytes: l.bytes(m)}
		if m == t.me {
			r.Bytes = 0
		}
		return r
	}, src)
	for i, members := range t.shape.Nodes {
		for _, m := range members {
			if err == nil && m != t.me && (i == t.shape.Mine || m == members[0]) {
				err = t.e.FlushContext(ctx, &t.peers[m]) // the barrier's flags do not all go the way of the puts
			}
		}
	}
	return err
}

// partsInSlices says in slices of how many bytes of each part an all-to-all of n members goes by nodes: in two turns for each slice, in the first of which the members
// of a node collect what all of them have for each other member, so that a member reads once from each other node, instead of once from each of its members
// (all-to-all by nodes: Träff and Rougier 2014). What a member has of a slice, and what it collects, must fit into an outbox. It is 0 where reading each part from its
// owner, in so many turns, takes less. Further turns are paid for by messages that are saved, and those get fewer with each slice: above some length, 1 to 2 KB where 8
// to 16 share a node, messages are long enough without.
func partsInSlices(n, nodes, smallest, largest, part, payload, turns int) int {
	most := payload / max(n, sharePieces(n, smallest)*largest)
	if nodes == 1 || part == 0 || most == 0 {
		return 0
	}
	slices := (part + most - 1) / most
	k := n / nodes
	if k*(n-k)-slices*k*(nodes-1) < (2*slices-turns)*readsOfBarrier {
		return 0
	}
	return (part + slices - 1) / slices
}

// readsOfBarrier is how many reads from a node take as long as a further barrier. (In virtual time, a network of 100 Gbit/s: all-to-all of 8 bytes takes 32
// ranks on 4 nodes 8.5 µs instead of 15.3, and 64 on 8 nodes 11.6 instead of 31.6. In slices, 64
// ranks: parts of 512 bytes on 8 nodes 54 µs instead of 61, on 4 nodes 60 instead of 89; of 2 to 32 KB both ways are within a tenth of each other.)
const readsOfBarrier = 64

// InSlices says how many bytes of each part ShuffleParts should take at a time: 0 if reading each part from its owner, in so many turns, takes less.
func (c *turns) InSlices(part, turns int) int {
	t := c.t
	largest := 0
	for _, members := range t.shape.Nodes {
		largest = max(largest, len(members))
	}
	return partsInSlices(len(t.ranks), len(t.shape.Nodes), t.smallest(), largest, part, c.Payload(), turns)
}

// ShuffleParts gives part j of every member's src to member j, as part i of whose dst that of member i arrives. All parts have one length. It takes two turns, in
// which members agree on elem and n, for each slice bytes of a part.
func (c *turns) ShuffleParts(ctx context.Context, elem, n, slice int, dst, src mem.Range) error {
	part := src.Bytes / len(c.t.ranks)
	var spare mem.Range
	if slice < part || !c.t.shape.InOrder() {
		spare = mem.Of(make([]byte, slice*len(c.t.ranks)))
	}
	for lo := 0; lo < part; lo += slice {
		if err := c.shuffle(ctx, callOf(c.op, elem, 0, n), lo, min(slice, part-lo), dst, src, spare); err != nil {
			return err
		}
	}
	return nil
}

// shuffle does so with bytes bytes of each part, from lo on. Where these do not lie in dst as they come, they come to spare first.
func (c *turns) shuffle(ctx context.Context, what call, lo, bytes int, dst, src, spare mem.Range) error {
	t, all := c.t, len(c.t.ranks)
	nodes, home := t.shape.Nodes, t.shape.Nodes[t.shape.Mine]
	part, place := src.Bytes/all, places(t.shape.Nodes)
	if bytes == part {
		c.Write(0, src)
	} else {
		for m := range all {
			c.Write(m*bytes, src.Slice(m*part+lo, bytes))
		}
	}
	if err := c.turn(ctx, what, 0, visitor{}); err != nil {
		return err
	}
	mates := make([]mem.Range, len(home)) // what the members of this node have for all
	for i, m := range home {
		var buf mem.Range
		if !c.Mapped(m) {
			buf = mem.Of(make([]byte, all*bytes))
		}
		theirs, err := c.See(m, 0, all*bytes, buf)
		if err != nil {
			return err
		}
		mates[i] = theirs
		mem.Copy(dst.Slice(m*part+lo, bytes).Data(), theirs.Slice(t.me*bytes, bytes).Data())
	}
	mine, k, far := c.Box(0, c.Payload()), len(home), 0 // how many members of other nodes there were so far
	for i, members := range nodes {
		if i == t.shape.Mine {
			continue
		}
		for _, m := range members {
			if far%k == place[t.me].at {
				for j, theirs := range mates {
					mem.Copy(mine.Slice((far/k*k+j)*bytes, bytes).Data(), theirs.Slice(m*bytes, bytes).Data())
				}
			}
			far++
		}
	}
	t.e.Sched.ChargeCopy(all*bytes, all*bytes)
	if err := c.turn(ctx, what, 0, visitor{}); err != nil {
		return err
	}
	before := 0 // how many members the nodes before this one's have
	for _, members := range nodes[:t.shape.Mine] {
		before += len(members)
	}
	into, begin := spare, make([]int, len(nodes))
	straight := bytes == part && t.shape.InOrder()
	if straight {
		into = dst
	}
	for i, members := range nodes {
		switch {
		case straight:
			begin[i] = members[0] * bytes
		case i > 0:
			begin[i] = begin[i-1] + len(nodes[i-1])*bytes
		}
	}
	err := c.ReadAll(into, func(m int) (from, to, length int) {
		i := place[m].node
		if i == t.shape.Mine {
			return 0, 0, 0
		}
		k, far := len(nodes[i]), before+place[t.me].at // as that node counts
		if i < t.shape.Mine {
			far -= k
		}
		if far%k != place[m].at {
			return 0, 0, 0
		}
		return far / k * k * bytes, begin[i], k * bytes
	})
	if err != nil || straight {
		return err
	}
	for m := range all {
		if i := place[m].node; i != t.shape.Mine {
			mem.Copy(dst.Slice(m*part+lo, bytes).Data(), into.Slice(begin[i]+place[m].at*bytes, bytes).Data())
		}
	}
	t.e.Sched.ChargeCopy(all*bytes, all*bytes)
	return nil
}
