package pgsync

import (
	"context"
	"fmt"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
	"gopgas/internal/symheap"
	"gopgas/transport"
)

// Lock is a mutual exclusion among the ranks of a team. Its state lives on member 0: the holder, and a word for
// each member that tells whether it waits. The one who releases hands the lock to the next waiter in the
// order of ranks, so none waits for ever, and a waiter spins on a word of its own memory.
type Lock struct {
	t     *Team
	block *symheap.Block
	peers []proto.Remote
	local mem.Range
	busy  atomic.Bool // a goroutine of this rank holds the lock or waits for it
	held  atomic.Bool
	turns uint64 // grants this rank has had
}

// The lock's block, in bytes.
const (
	lockHolder = 0   // on member 0: the holder's member number + 1, or 0
	lockGrant  = 64  // on every member: grows when the lock is handed to it
	lockWants  = 128 // on member 0: a word for each member, not 0 while it waits
)

// NewLock returns a lock that nobody holds. Collective.
func NewLock(ctx context.Context, t *Team) (*Lock, error) {
	block, err := t.alloc(ctx, lockWants+8*t.Size())
	if err != nil {
		return nil, err
	}
	return &Lock{t: t, block: block, peers: block.Remotes(), local: block.Local()}, nil
}

// Free gives the lock back. Collective.
func (l *Lock) Free(ctx context.Context) error {
	if l.block == nil {
		return transport.NewOpError("free", -1, transport.ErrClosed)
	}
	err := l.t.free(ctx, l.block)
	l.block, l.peers = nil, nil
	return err
}

// TryLock takes the lock if nobody holds it.
func (l *Lock) TryLock() (bool, error) {
	if l.peers == nil {
		return false, transport.NewOpError("lock", -1, transport.ErrClosed)
	}
	if !l.busy.CompareAndSwap(false, true) {
		return false, nil
	}
	ok, err := l.take()
	if !ok {
		l.busy.Store(false)
	}
	return ok, err
}

// take tries to become the holder.
func (l *Lock) take() (bool, error) {
	old, err := l.home(proto.CompareSwap, lockHolder, 0, uint64(l.t.me)+1)
	if err != nil || old != 0 {
		return false, err
	}
	l.held.Store(true)
	return true, nil
}

// home performs an atomic on member 0's part.
func (l *Lock) home(op proto.Atom, off int, x, y uint64) (uint64, error) {
	return l.t.e.Atomic(op, word64, &l.peers[0], off, x, y)
}

// Lock waits for the lock. When its holder is gone, the lock is lost: this and every later call returns an
// error wrapping transport.ErrPeerGone that names the holder.
func (l *Lock) Lock(ctx context.Context) error {
	const op = "lock"
	if l.peers == nil {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	e := l.t.e
	sp := e.Sched.Begin(ctx, sched.What{Op: op, Peer: -1}, nil)
	for !l.busy.CompareAndSwap(false, true) {
		if err := sp.Step(); err != nil {
			sp.End()
			return transport.NewOpError(op, -1, err)
		}
	}
	sp.End()
	ok, err := l.take()
	if ok {
		return nil
	}
	if err == nil {
		err = l.wait(ctx)
	}
	if err != nil {
		l.busy.Store(false)
	}
	return err
}

// wait announces this member as a waiter and sleeps until the lock is handed to it.
func (l *Lock) wait(ctx context.Context) error {
	wants := lockWants + 8*l.t.me
	if _, err := l.home(proto.Replace, wants, 1, 0); err != nil {
		return err
	}
	// The holder may have looked for waiters before the announcement and found none.
	ok, err := l.take()
	if ok {
		_, err := l.home(proto.Replace, wants, 0, 0)
		if err == nil {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	grant := l.local.Word64(lockGrant)
	w := lockWatch{l: l}
	sp := l.t.e.Sched.Begin(ctx, sched.What{Op: "lock", Peer: l.t.ranks[0]}, &w)
	defer sp.End()
	for grant.Load() == l.turns {
		if err := sp.Step(); err != nil {
			return l.withdraw(wants, err)
		}
	}
	l.turns = grant.Load()
	l.held.Store(true)
	return nil
}

// withdraw takes the announcement back. If the lock was handed over in between, the wait has succeeded.
func (l *Lock) withdraw(wants int, cause error) error {
	old, err := l.home(proto.Replace, wants, 0, 0)
	if err == nil && old == 0 && l.t.Interrupted() == nil {
		// Somebody has cleared it and is about to grant: the grant must not be lost.
		grant := l.local.Word64(lockGrant)
		sp := l.t.e.Sched.Begin(nil, sched.What{Op: "lock", Peer: -1}, l.t)
		defer sp.End()
		for grant.Load() == l.turns {
			if err := sp.Step(); err != nil {
				return transport.NewOpError("lock", -1, err)
			}
		}
		l.turns = grant.Load()
		l.held.Store(true)
		if err := l.unlock(); err != nil {
			return err
		}
	}
	return transport.NewOpError("lock", -1, cause)
}

// lockWatch ends a wait when the lock's holder, or the rank that keeps its state, is gone.
type lockWatch struct{ l *Lock }

// Interrupted implements sched.Watch.
func (w *lockWatch) Interrupted() error {
	p := w.l.t.e.Peers
	if !p.AnyGone() {
		return nil
	}
	if err := p.Check(w.l.t.ranks[0]); err != nil {
		return err
	}
	var holder [1]uint64
	if err := w.l.t.e.Get(&w.l.peers[0], lockHolder, mem.Of(holder[:])); err != nil {
		return err
	}
	if holder[0] == 0 {
		return nil
	}
	if err := p.Check(w.l.t.ranks[holder[0]-1]); err != nil {
		return fmt.Errorf("it held the lock: %w", err)
	}
	return nil
}

// Unlock releases the lock, after making this rank's earlier puts to all members visible. It is an error if this
// rank does not hold the lock.
func (l *Lock) Unlock() error {
	if l.peers == nil {
		return transport.NewOpError("unlock", -1, transport.ErrClosed)
	}
	if !l.held.Load() {
		return transport.NewOpError("unlock", -1, fmt.Errorf("%w: this rank does not hold the lock", ErrState))
	}
	for m := range l.peers {
		if err := l.t.e.Flush(&l.peers[m]); err != nil {
			return err
		}
	}
	err := l.unlock()
	l.busy.Store(false)
	return err
}

// unlock hands the lock to the next living waiter, or leaves it free.
func (l *Lock) unlock() error {
	l.held.Store(false)
	e, n := l.t.e, l.t.Size()
	me := uint64(l.t.me) + 1
	for holding := true; ; {
		if !holding {
			// Free, with somebody waiting who came too late to be seen: take it again to hand it on.
			old, err := l.home(proto.CompareSwap, lockHolder, 0, me)
			if err != nil || old != 0 {
				return err
			}
			holding = true
		}
		next, err := l.nextWaiter()
		if err != nil {
			return err
		}
		if next >= 0 {
			if _, err := l.home(proto.Replace, lockHolder, uint64(next)+1, 0); err != nil {
				return err
			}
			if _, err := e.Atomic(proto.Sum, word64, &l.peers[next], lockGrant, 1, 0); err != nil {
				return err
			}
			e.Peers.Ring(l.peers[next].Rank)
			return nil
		}
		if _, err := l.home(proto.Replace, lockHolder, 0, 0); err != nil {
			return err
		}
		holding = false
		if next, err = l.peekWaiter(n); err != nil || next < 0 {
			return err
		}
	}
}

// nextWaiter finds the first living waiter after this member and clears its announcement; -1 if none.
func (l *Lock) nextWaiter() (int, error) {
	n := l.t.Size()
	for i := 1; i <= n; i++ {
		m := (l.t.me + i) % n
		if m == l.t.me || l.t.e.Peers.Check(l.t.ranks[m]) != nil {
			continue
		}
		off := lockWants + 8*m
		old, err := l.home(proto.CompareSwap, off, 1, 0)
		if err != nil {
			return -1, err
		}
		if old == 1 {
			return m, nil
		}
	}
	return -1, nil
}

// peekWaiter looks for a living waiter without clearing its announcement.
func (l *Lock) peekWaiter(n int) (int, error) {
	for m := range n {
		var wants [1]uint64
		if err := l.t.e.Get(&l.peers[0], lockWants+8*m, mem.Of(wants[:])); err != nil {
			return -1, err
		}
		if wants[0] != 0 && m != l.t.me && l.t.e.Peers.Check(l.t.ranks[m]) == nil {
			return m, nil
		}
	}
	return -1, nil
}
