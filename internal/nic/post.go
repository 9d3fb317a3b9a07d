package nic

import (
	"sync"
	"sync/atomic"

	"gopgas/internal/inflight"
	"gopgas/internal/invariants"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// Post hands the operation of piece id to the NIC; it waits for the connection, and while the NIC has no room. The caller has filled in
// all of op but for its endpoint and its cookie. On an error the piece has been freed.
func (n *NIC) Post(name string, id int32, op transport.Op) error {
	rank := n.table.Piece(id).Rank
	e, err := n.enter(name, rank)
	if err != nil {
		n.Abandon(id)
		return err
	}
	op.Cookie = uint64(id)
	op.Flags |= transport.FlagSignaled
	op.EP = e.now()
	ops := n.table.Op(id)
	ops[0] = op
	n.table.Piece(id).Seq = e.seq.Add(1)
	posted := false
	var refused error
	try := func() bool {
		if !n.push() {
			return false // what was put before goes before
		}
		k, err := n.Domain.Post(ops)
		posted, refused = k == 1, err
		return posted || err != nil
	}
	if try() && posted {
		return nil
	}
	err = transport.NewOpError(name, rank, refused)
	if err == nil {
		err = n.WaitUntil(name, rank, try)
	}
	if posted {
		return nil
	}
	if err == nil {
		err = transport.NewOpError(name, rank, refused)
	}
	e.leave()
	n.Abandon(id)
	return err
}

// TryPost hands one operation to the NIC, from and to memory of the caller's, if that can be done now; it waits for nothing. op.EP.Index
// is the rank. How it ends Client.Reported is told, with op.Cookie.
func (n *NIC) TryPost(op *transport.Op) (posted bool, err error) {
	rank := int(op.EP.Index)
	if n.closed.Load() {
		return false, ErrOwnEnd
	}
	if err := n.peers.Check(rank); err != nil {
		return false, err
	}
	if !n.tryEnter(rank) {
		n.want(rank)
		return false, nil
	}
	e := &n.ends[rank]
	id, ok := n.TryAcquire(rank, false)
	if !ok || !n.push() {
		e.leave()
		if ok {
			n.Abandon(id)
		}
		return false, nil
	}
	wr := *op
	wr.Cookie, wr.EP = uint64(id), e.now()
	p, ops := n.table.Piece(id), n.table.Op(id)
	n.mu.Lock()
	p.Piped, p.Inner = true, op.Cookie
	n.mu.Unlock()
	p.Seq = e.seq.Add(1)
	ops[0] = wr
	k, err := n.Domain.Post(ops)
	if k == 1 {
		return true, nil
	}
	n.mu.Lock()
	p.Piped = false
	n.mu.Unlock()
	e.leave()
	n.Abandon(id)
	return false, err
}

// later holds operations for which nobody waits yet, in order, so that many of them cross into the NIC together. They
// go before anything else that this rank posts, and with the next step of any wait.
type later struct {
	count   atomic.Int32 // len, for who does not hold mu
	pushing atomic.Bool  // the first of ops are being posted
	mu      sync.Mutex   // not held while the NIC is called, which may let time pass
	ops     [Batch]transport.Op
	len     int
}

// PostLater leaves the operation of piece id to the next post of anything, or the next step of any wait; it waits for the connection,
// and while there is no room. The caller has filled in all of op but for its endpoint and its cookie. On an error the piece has been freed.
func (n *NIC) PostLater(name string, id int32, op *transport.Op) error {
	p := n.table.Piece(id)
	rank := p.Rank
	e, err := n.enter(name, rank)
	if err != nil {
		n.Abandon(id)
		return err
	}
	op.Cookie = uint64(id)
	op.Flags |= transport.FlagSignaled
	op.EP = e.now()
	n.table.Op(id)[0] = *op
	if n.later.add(op, p, e) {
		return nil
	}
	err = n.WaitUntil(name, rank, func() bool { n.push(); return n.later.add(op, p, e) })
	if err != nil {
		e.leave()
		n.Abandon(id)
	}
	return err
}

// HeldBack is how many operations PostLater has left to the next post.
func (n *NIC) HeldBack() int { return int(n.later.count.Load()) }

// add appends an operation, or says that there is no room.
func (l *later) add(op *transport.Op, p *inflight.Piece, e *endpoint) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.len == len(l.ops) {
		return false
	}
	p.Seq = e.seq.Add(1)
	l.ops[l.len] = *op
	l.len++
	l.count.Store(int32(l.len))
	return true
}

// push hands the operations that are held to the NIC, and reports whether it took all.
func (n *NIC) push() bool {
	l := &n.later
	if l.count.Load() == 0 {
		return true
	}
	if !l.pushing.CompareAndSwap(false, true) {
		return false // somebody is at it
	}
	defer l.pushing.Store(false)
	l.mu.Lock()
	k := l.len
	l.mu.Unlock()
	if k == 0 {
		return true
	}
	if !n.sched.Virtual() && invariants.Sometimes(10) {
		k = 1 // as where the NIC has room for no more
	}
	done, err := n.Domain.Post(l.ops[:k]) // add touches only what is behind them
	if err != nil && done < k {
		id := int32(l.ops[done].Cookie)
		n.ends[n.table.Piece(id).Rank].leave()
		n.settle(id, err)
		done++
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.len = copy(l.ops[:], l.ops[done:l.len])
	l.count.Store(int32(l.len))
	return l.len == 0
}

// Lane is a NIC as those see it who have names of their own for their operations, and call an endpoint by its rank: pipes, for instance.
type Lane struct{ N *NIC }

// Caps returns what the NIC can do.
func (l Lane) Caps() transport.Caps { return l.N.Caps }

// Register registers memory with the NIC.
func (l Lane) Register(r mem.Range, a transport.Access) (transport.Region, error) {
	return l.N.Domain.Register(r, a)
}

// Deregister ends a registration.
func (l Lane) Deregister(r transport.Region) error { return l.N.Domain.Deregister(r) }

// Post hands over as many operations as can be now, by TryPost: it waits for nothing.
func (l Lane) Post(ops []transport.Op) (posted int, err error) {
	for posted < len(ops) && err == nil {
		var ok bool
		if ok, err = l.N.TryPost(&ops[posted]); !ok {
			break
		}
		posted++
	}
	return posted, err
}
