package proto

import (
	"sync"
	"sync/atomic"

	"gopgas/internal/inflight"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// later holds small puts and atomics for which nobody waits yet, in order, so that many of them cross into the NIC together. They
// go before anything else that this rank posts, and with the next step of any wait.
type later struct {
	count   atomic.Int32 // len, for who does not hold mu
	pushing atomic.Bool  // the first of ops are being posted
	mu      sync.Mutex   // not held while the NIC is called, which may let time pass
	ops     [chainOps]transport.Op
	len     int
}

// putLater is put for a caller who will flush or wait: a small put may stay here. src may be reused on return.
func (n *nic) putLater(op string, r *Remote, off int, src mem.Range) error {
	if src.Bytes > n.inline || r.hosed != nil {
		return n.put(op, r, off, src)
	}
	if err := n.reach(op, r, off, src.Bytes); err != nil {
		return err
	}
	id, err := n.acquire(op, r.Rank, false)
	if err != nil {
		return err
	}
	e, err := n.enter(op, r.Rank)
	if err != nil {
		n.abandon(id)
		return err
	}
	n.e.counts.add(PathInline, r.Rank, src.Bytes)
	buf, key := n.buffer(id, src.Bytes)
	copy(buf.Data(), src.Data())
	wr := transport.Op{
		Kind: transport.OpWrite, Flags: transport.FlagInline | transport.FlagSignaled, NSGE: 1, EP: e.now(),
		RAddr: r.raddr + uint64(off), RKey: r.rkey, Cookie: uint64(id),
	}
	wr.SGE[0] = transport.SGE{Mem: buf, LKey: key}
	return n.postpone(op, id, e, &wr)
}

// postpone leaves the operation of piece id, whose endpoint has been entered, to the next push; it waits while there is no room
// for it. On an error the piece has been freed.
func (n *nic) postpone(name string, id int32, e *endpoint, op *transport.Op) error {
	n.table.Op(id)[0] = *op
	p := n.table.Piece(id)
	if n.later.add(op, p, e) {
		return nil
	}
	rank := p.Rank
	err := n.waitUntil(name, rank, func() bool { n.push(); return n.later.add(op, p, e) })
	if err != nil {
		e.leave()
		n.abandon(id)
	}
	return err
}

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
func (n *nic) push() bool {
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
	done, err := n.d.Post(l.ops[:k]) // add touches only what is behind them
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
