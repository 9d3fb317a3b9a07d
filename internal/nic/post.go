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
	n.table.Op(id)[0] = op
	return n.PostLaid(name, id)
}

// Lay writes the operation of piece id, between so many bytes of its buffer and the target's memory, to where it is posted from, and
// returns both: the caller fills the buffer, and adds what else the operation needs. It is for what is posted by PostLaid, or
// PostLaidLater: an operation is larger than all that most of them need, so it is written once and copied nowhere.
func (n *NIC) Lay(id int32, kind transport.Kind, flags uint8, bytes int, raddr, rkey uint64) (op *transport.Op, buf mem.Range) {
	op = n.table.Lay(id, kind, flags, bytes, raddr, rkey)
	return op, op.SGE[0].Mem
}

// Tally is operations and their bytes, for who holds a lock while he adds: what is stored takes less than what is added at once.
type Tally struct{ Ops, Bytes atomic.Uint64 }

// Add counts an operation of so many bytes.
func (t *Tally) Add(bytes int) {
	mem.Publish(&t.Ops, t.Ops.Load()+1)
	mem.Publish(&t.Bytes, t.Bytes.Load()+uint64(bytes))
}

// TryLay is TryAcquire, without a slot, and then Lay, for an operation to rank that it counts in tally, under the lock. ok is false, and nothing has
// been done, where there is no tally, no piece, or its buffer is too short.
func (n *NIC) TryLay(tally *Tally, rank int, kind transport.Kind, flags uint8, bytes int, raddr, rkey uint64) (op *transport.Op, id int32, ok bool) {
	if tally == nil || uint(bytes) > ScratchBytes {
		return nil, 0, false
	}
	n.mu.Lock()
	if id, ok = n.table.TryTake(rank); ok {
		n.ends[rank].beganLocked()
		tally.Add(bytes)
		p := n.table.Piece(id)
		op = p.Lay(kind, flags, raddr, rkey)
		n.table.Scratch(p, op, bytes)
	}
	n.mu.Unlock()
	return op, id, ok
}

// PostLaid is Post for an operation that Lay has written.
func (n *NIC) PostLaid(name string, id int32) error {
	p := n.table.Piece(id)
	e := &n.ends[p.Rank]
	if seq := e.entered.Add(1); e.state.Load() == epUp {
		e.address(p, id, seq)
	} else if err := n.reenter(name, id, e); err != nil {
		return err
	}
	if n.HeldBack() > 0 && !n.push() { // what was put before goes before
		return n.insist(name, id, e, nil)
	}
	if k, err := n.Domain.Post(p.Op()); k != 1 {
		return n.insist(name, id, e, err)
	}
	return nil
}

// address writes the operation of piece id, which has entered as number seq, to where it is posted from.
func (e *endpoint) address(p *inflight.Piece, id int32, seq uint64) {
	p.Seq = seq
	op := &p.Op()[0]
	op.Cookie, op.EP = uint64(id), e.now()
	op.Flags |= transport.FlagSignaled
}

// reenter is address for piece id's operation, which has entered its endpoint in vain: it leaves that, and waits until it may enter. On an error the
// piece has been freed.
func (n *NIC) reenter(name string, id int32, e *endpoint) error {
	n.leave(e)
	p := n.table.Piece(id)
	_, seq, err := n.enter(name, p.Rank)
	if err != nil {
		n.Abandon(id)
		return err
	}
	e.address(p, id, seq)
	return nil
}

// insist posts piece id's operation as soon as the NIC takes it, unless it has refused it for good.
func (n *NIC) insist(name string, id int32, e *endpoint, refused error) error {
	rank, posted := n.table.Piece(id).Rank, false
	err := transport.NewOpError(name, rank, refused)
	if err == nil {
		err = n.WaitUntil(name, rank, func() bool {
			if !n.push() {
				return false
			}
			k, err := n.Domain.Post(n.table.Op(id))
			posted, refused = k == 1, err
			return posted || err != nil
		})
	}
	if posted {
		return nil
	}
	if err == nil {
		err = transport.NewOpError(name, rank, refused)
	}
	n.leave(e)
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
	e := &n.ends[rank]
	seq, ok := n.tryEnter(e)
	if !ok {
		n.want(rank)
		return false, nil
	}
	id, ok := n.TryAcquire(rank, false)
	if !ok || !n.push() {
		n.leave(e)
		if ok {
			n.Abandon(id)
		}
		return false, nil
	}
	p, ops := n.table.Piece(id), n.table.Op(id)
	p.Inner, p.Seq = op.Cookie, seq
	p.Mark(inflight.Piped)
	ops[0] = *op
	ops[0].Cookie, ops[0].EP = uint64(id), e.now()
	k, err := n.Domain.Post(ops)
	if k == 1 {
		return true, nil
	}
	n.leave(e)
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

// PostLaidLater leaves the operation of piece id, which Lay has written, to the next post of anything, or the next step of any wait; it
// waits for the connection, and while there is no room. On an error the piece has been freed.
func (n *NIC) PostLaidLater(name string, id int32) error {
	p := n.table.Piece(id)
	e := &n.ends[p.Rank]
	if seq := e.entered.Add(1); e.state.Load() == epUp {
		e.address(p, id, seq)
	} else if err := n.reenter(name, id, e); err != nil {
		return err
	}
	op := &p.Op()[0]
	if n.later.add(op) {
		return nil
	}
	err := n.WaitUntil(name, p.Rank, func() bool { n.push(); return n.later.add(op) })
	if err != nil {
		n.leave(e)
		n.Abandon(id)
	}
	return err
}

// HeldBack is how many operations PostLaidLater has left to the next post.
func (n *NIC) HeldBack() int { return int(n.later.count.Load()) }

// add appends an operation, or says that there is no room.
func (l *later) add(op *transport.Op) bool {
	l.mu.Lock()
	k := l.len
	if k < len(l.ops) {
		l.ops[k] = *op
		l.len = k + 1
		l.count.Store(int32(k + 1))
	}
	l.mu.Unlock()
	return k < len(l.ops)
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
		n.settle(id, &n.ends[n.table.Piece(id).Rank], err)
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
