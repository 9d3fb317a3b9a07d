package nic

import (
	"sync"
	"sync/atomic"

	"gopgas/internal/invariants"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// later holds operations for which nobody waits yet, in order, so that many of them cross into the NIC together. They
// go before anything else that this rank posts, and with the next step of any wait.
type later struct {
	count   atomic.Uint64 // len, for who does not hold mu; written under it
	pushing atomic.Bool   // the first of ops are being posted
	mu      sync.Mutex    // not held while the NIC is called, which may let time pass
	ops     [Batch]transport.Op
	len     int
	going   int  // how many of them, from the first on, are being posted
	ordered bool // what was put so far is before what follows: the last takes in no more

	inTime inTime // written under mu
}

// Extend adds a put of src to the operation that was held back last, if that is a plain one to the bytes just before these, and has room for
// them. It reports whether it has: both puts are one operation then, which costs the NIC as much as one, and src may be reused. It never waits.
func (n *NIC) Extend(rank int, raddr, rkey uint64, src mem.Range) bool {
	if n.later.count.Load() == 0 {
		return false
	}
	l := &n.later
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.len - 1
	if last < l.going || l.ordered {
		return false
	}
	op := &l.ops[last]
	s := &op.SGE[0]
	if op.RAddr+uint64(s.Mem.Bytes) != raddr || op.RKey != rkey || int(op.EP.Index) != rank || op.Kind != transport.OpWrite {
		return false
	}
	p := n.table.Piece(int32(op.Cookie))
	if !p.Bare() {
		return false
	}
	at, ok := p.Grow(src.Bytes, n.Inline)
	if ok {
		mem.CopyRange(at, src)
		s.Mem.Bytes, op.Flags = p.Op()[0].SGE[0].Mem.Bytes, p.Op()[0].Flags
	}
	return ok
}

// order has what was put so far stay before what is put from now on.
func (l *later) order() {
	if l.count.Load() != 0 {
		l.mu.Lock()
		l.ordered = true
		l.mu.Unlock()
	}
}

// PostLaidLater leaves the operation of piece id, which Lay has written, to the next post of anything, or the next step of any wait; it
// waits for the connection, and while there is no room. On an error the piece has been freed.
func (n *NIC) PostLaidLater(name string, id int32) error {
	op, err := n.Enter(name, id)
	if err != nil {
		return err
	}
	return n.SendLater(name, op)
}

// SendLater is PostLaidLater for an operation that TryLay has laid.
func (n *NIC) SendLater(name string, op *Laid) error {
	n.later.inTime.hurry()
	if n.later.add(&op[0]) {
		return nil
	}
	err := n.WaitUntil(name, int(op[0].EP.Index), func() bool { n.push(); return n.later.add(&op[0]) })
	if err != nil {
		n.giveUpLaid(op)
	}
	return err
}

// addBehind leaves an operation that TryLay has laid to the next push, to cross into the NIC together with what is held back, if anything is. Where the NIC refuses it, that is its end.
func (n *NIC) addBehind(op *Laid) bool {
	if n.HeldBack() == 0 || !n.later.add(&op[0]) {
		return false
	}
	n.used()
	return true
}

// HeldBack is how many operations PostLaidLater has left to the next post.
func (n *NIC) HeldBack() int { return int(n.later.count.Load()) }

// add appends an operation, or says that there is no room.
func (l *later) add(op *transport.Op) bool {
	l.mu.Lock()
	ok := l.addLocked(op)
	l.mu.Unlock()
	return ok
}

func (l *later) addLocked(op *transport.Op) bool {
	k := l.len
	if k == len(l.ops) {
		return false
	}
	l.ops[k] = *op
	l.len, l.ordered = k+1, false
	mem.Publish(&l.count, uint64(k+1))
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
	if k > 1 && !n.sched.Virtual() && invariants.Sometimes(10) {
		k = 1 // as where the NIC has room for no more
	}
	l.going = k
	l.mu.Unlock()
	if k == 0 {
		return true
	}
	done, err := n.Domain.Post(l.ops[:k]) // add and Extend touch only what is behind them
	if n.hastener != nil {
		n.noteAll(l.ops[:done])
	}
	if err != nil && done < k {
		id := int32(l.ops[done].Cookie)
		n.settle(id, n.ends[n.table.Piece(id).Rank], err)
		done++
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.len, l.going = copy(l.ops[:], l.ops[done:l.len]), 0
	mem.Publish(&l.count, uint64(l.len))
	if l.len > 0 {
		l.inTime.hurry()
		return false
	}
	l.inTime.some.Store(false)
	return true
}
