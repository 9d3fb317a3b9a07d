package lock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// Mutex is a mutual exclusion among the members of a group. Its state lives on member 0: the holder, and a word for
// each member that tells whether it waits. The one who releases hands the lock to the next waiter in the
// order of members, so none waits for ever, and a waiter spins on a word of its own memory. The zero Mutex is closed.
type Mutex struct {
	g      Group
	peers  []proto.Remote
	local  mem.Range
	busy   atomic.Bool // a goroutine of this rank holds the lock or waits for it
	held   atomic.Bool
	ticket uint64           // number of this rank's latest wait
	leaver leaver           // of whoever is busy
	race   *racecheck.Shelf // nil: races are not looked for
}

// The lock's block, in bytes.
const (
	lockHolder = 0   // on member 0: the holder's member number + 1, or 0
	lockGrant  = 64  // on every member: the ticket that the lock was handed to
	lockWants  = 128 // on member 0: a word for each member, its ticket while it waits
)

// ownBytes is the size of a block, a Mutex's or an RW's, without what is kept for who looks for races.
func ownBytes(members int) int { return (lockWants + 8*members + 63) &^ 63 }

// MutexBytes is the size of the block of a Mutex of the group, on every member.
func MutexBytes(g Group) int { return ownBytes(len(g.Ranks)) + g.Races.ShelfBytes(1, 0) }

// Open makes a Mutex that nobody holds of zeroed blocks of MutexBytes: this rank's and, by member, all.
func (l *Mutex) Open(g Group, peers []proto.Remote, local mem.Range) {
	l.g, l.peers, l.local = g, peers, local
	l.race = g.Races.Shelf(peers, ownBytes(len(g.Ranks)), 1, 0)
}

// Close lets nobody of this rank use the lock any more. The members have agreed that nobody does.
func (l *Mutex) Close() { l.peers = nil }

// TryLock takes the lock if nobody holds it, and returns whether it did. It waits for nobody. Where the holder is gone it
// returns the error of Lock, so that a loop over it ends.
func (l *Mutex) TryLock() (bool, error) {
	if l.peers == nil {
		return false, transport.NewOpError("lock", -1, transport.ErrClosed)
	}
	if !l.busy.CompareAndSwap(false, true) {
		return false, nil
	}
	ok, err := l.take()
	if !ok && err == nil {
		if err = l.lost(); err == nil && l.leaver.seldom() {
			err = l.lostBy(l.holder())
		}
		err = l.g.WaitError("lock", -1, err) // nil of nil
	}
	if !ok {
		l.idle()
		return false, err
	}
	l.race.Acquire(0, 0)
	return true, nil
}

// take tries to become the holder.
func (l *Mutex) take() (bool, error) {
	old, err := l.home(atom.CompareSwap, lockHolder, 0, uint64(l.g.Me)+1)
	if err != nil || old != 0 {
		return false, err
	}
	l.held.Store(true)
	return true, nil
}

// takeAnnounced is take by who has announced itself, and takes that back when it is the holder.
func (l *Mutex) takeAnnounced(wants int) (bool, error) {
	ok, err := l.take()
	if ok {
		_, err = l.home(atom.Replace, wants, 0, 0)
	}
	return ok, err
}

// home performs an atomic on member 0's part.
func (l *Mutex) home(op atom.Op, off int, x, y uint64) (uint64, error) {
	if err := l.g.Engine.Gone("lock", l.peers[0].Rank); err != nil {
		return 0, err
	}
	return l.g.Engine.Atomic(op, atom.Word64(), &l.peers[0], off, x, y)
}

// Lock waits for the lock. When its holder is gone, or closes its world, the lock is lost: this and every later call returns an
// error wrapping transport.ErrPeerGone that names the holder.
func (l *Mutex) Lock(ctx context.Context) error {
	const op = "lock"
	if l.peers == nil {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if err := l.g.occupy(ctx, op, &l.busy); err != nil {
		return err
	}
	ok, err := l.take()
	if !ok && err == nil {
		err = l.wait(ctx)
	}
	if err != nil {
		l.idle()
		return err
	}
	l.race.Acquire(0, 0)
	return nil
}

// idle lets another goroutine of this rank be busy with the lock, and wakes those that wait for that: no other rank does.
func (l *Mutex) idle() {
	l.busy.Store(false)
	l.g.Engine.Sched.Ring()
}

// wait announces this member as a waiter and sleeps until the lock is handed to it.
func (l *Mutex) wait(ctx context.Context) error {
	wants := lockWants + 8*l.g.Me
	l.ticket++
	if _, err := l.home(atom.Replace, wants, l.ticket, 0); err != nil {
		return err
	}
	// The holder may have looked for waiters before the announcement and found none.
	ok, err := l.takeAnnounced(wants)
	if ok || err != nil {
		return err
	}
	w := mutexWatch{l: l}
	sp := l.g.Engine.Sched.Begin(ctx, sched.What{Op: "lock", Peer: sched.Anyone}, &w)
	defer sp.End()
	for !l.granted() {
		err := sp.Step()
		if errors.Is(err, errMine) {
			break
		}
		if errors.Is(err, errFree) {
			if ok, err = l.takeAnnounced(wants); ok {
				return err
			}
		}
		if err != nil {
			return l.withdraw(wants, err)
		}
		if sp.Unsure() {
			holder := l.holder()
			sp.For(holder)
			if err := l.lostBy(holder); err != nil {
				return l.withdraw(wants, err)
			}
		}
	}
	l.held.Store(true)
	return nil
}

// holder returns the rank that holds the lock; sched.Anyone where none does at the moment, or it cannot be read.
func (l *Mutex) holder() int {
	m, err := l.g.Engine.Load64(&l.peers[0], lockHolder)
	if err != nil || m == 0 || m > uint64(len(l.g.Ranks)) {
		return sched.Anyone
	}
	return l.g.Ranks[m-1]
}

// lostBy returns an error if the rank that held the lock a moment ago, or sched.Anyone, closes its world with it.
func (l *Mutex) lostBy(holder int) error {
	if holder == sched.Anyone {
		return nil
	}
	return l.leaver.lostBy(&l.g, []int{holder}, func(rank int) bool { return l.holder() == rank })
}

func (l *Mutex) granted() bool { return l.local.Word64(lockGrant).Load() == l.ticket }

// withdraw takes the announcement back. If the lock was handed over in between, it is handed on.
func (l *Mutex) withdraw(wants int, cause error) error {
	if old, err := l.home(atom.Replace, wants, 0, 0); err == nil && old == 0 {
		// Somebody has cleared it and is about to grant: the grant must not be lost.
		w := mutexWatch{l: l}
		sp := l.g.Engine.Sched.Begin(context.Background(), sched.What{Op: "lock", Peer: -1}, &w)
		defer sp.End()
		for !l.granted() {
			if err := sp.Step(); errors.Is(err, errMine) {
				break
			} else if err != nil && !errors.Is(err, errFree) {
				return l.g.WaitError("lock", -1, err)
			}
		}
		if err := l.unlock(); err != nil {
			return err
		}
	}
	return l.g.WaitError("lock", -1, cause)
}

// What ends a wait where somebody died in the midst of handing the lock on.
var (
	errMine = errors.New("the lock is this rank's") // he had made this rank the holder, and not told it
	errFree = errors.New("nobody has the lock")     // he had left it free, and not looked for who came too late to be seen. Others may just be about to look
)

// lost returns why nobody will get the lock any more, or nil.
func (l *Mutex) lost() error {
	w := mutexWatch{l}
	err := w.Interrupted()
	if errors.Is(err, errMine) || errors.Is(err, errFree) {
		return nil
	}
	return err
}

// mutexWatch ends a wait when the lock's holder, or the rank that keeps its state, is gone.
type mutexWatch struct{ l *Mutex }

// Interrupted implements sched.Watch.
func (w *mutexWatch) Interrupted() error {
	g := &w.l.g
	if !g.Engine.Peers.AnyGone() {
		return nil
	}
	if err := g.Engine.Peers.Check(g.Ranks[0]); err != nil {
		return err
	}
	holder, err := g.Engine.Load64(&w.l.peers[0], lockHolder)
	if err != nil {
		return err
	}
	switch holder {
	case 0:
		return errFree
	case uint64(g.Me) + 1:
		return errMine
	}
	if err := g.Engine.Peers.Check(g.Ranks[holder-1]); err != nil {
		return fmt.Errorf("it held the lock: %w", err)
	}
	return nil
}

// Unlock releases the lock, after making this rank's earlier puts to all members visible. It is an error if this
// rank does not hold the lock.
func (l *Mutex) Unlock() error {
	if l.peers == nil {
		return transport.NewOpError("unlock", -1, transport.ErrClosed)
	}
	if !l.held.CompareAndSwap(true, false) {
		return transport.NewOpError("unlock", -1, fmt.Errorf("%w: this rank does not hold the lock", ErrState))
	}
	// A put that failed, perhaps to a rank that is gone, is reported; the lock is released all the same.
	var errs []error
	l.g.Races.FlushedAll(l.peers)
	l.race.Release(0, 0, racecheck.CarryDone)
	for m := range l.peers {
		if err := l.g.Engine.Flush(&l.peers[m]); err != nil {
			errs = append(errs, err)
		}
	}
	if err := l.unlock(); err != nil {
		errs = append(errs, err)
	}
	l.idle()
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// unlock hands the lock to the next living waiter, or leaves it free.
func (l *Mutex) unlock() error {
	l.held.Store(false)
	e := l.g.Engine
	me := uint64(l.g.Me) + 1
	for holding := true; ; {
		if !holding {
			// Free, with somebody waiting who came too late to be seen: take it again to hand it on.
			old, err := l.home(atom.CompareSwap, lockHolder, 0, me)
			if err != nil || old != 0 {
				return err
			}
			holding = true
		}
		next, ticket, err := l.nextWaiter()
		if err != nil {
			return err
		}
		if next >= 0 {
			if _, err := l.home(atom.Replace, lockHolder, uint64(next)+1, 0); err != nil {
				return err
			}
			if _, err := e.Atomic(atom.Replace, atom.Word64(), &l.peers[next], lockGrant, ticket, 0); err != nil {
				return err
			}
			e.Peers.Ring(l.peers[next].Rank)
			return nil
		}
		if _, err := l.home(atom.Replace, lockHolder, 0, 0); err != nil {
			return err
		}
		holding = false
		if m, _, err := l.findWaiter(1); err != nil || m < 0 {
			return err
		}
	}
}

// nextWaiter finds the first living waiter after this member and clears its announcement; -1 if none.
func (l *Mutex) nextWaiter() (member int, ticket uint64, err error) {
	for i := 1; i < len(l.g.Ranks); i++ {
		m, ticket, err := l.findWaiter(i)
		if err != nil || m < 0 {
			return -1, 0, err
		}
		old, err := l.home(atom.CompareSwap, lockWants+8*m, ticket, 0)
		if err != nil {
			return -1, 0, err
		}
		if old == ticket {
			return m, ticket, nil
		}
		i = (m - l.g.Me + len(l.g.Ranks)) % len(l.g.Ranks) // withdrawn: look on behind it
	}
	return -1, 0, nil
}

// findWaiter returns the first living waiter among the members from me+first on, in a circle; -1 if none.
func (l *Mutex) findWaiter(first int) (member int, ticket uint64, err error) {
	n := len(l.g.Ranks)
	for i := first; i < n; i++ {
		m := (l.g.Me + i) % n
		if l.g.Engine.Peers.Check(l.g.Ranks[m]) != nil {
			continue
		}
		ticket, err := l.g.Engine.Load64(&l.peers[0], lockWants+8*m)
		if err != nil {
			return -1, 0, err
		}
		if ticket != 0 {
			return m, ticket, nil
		}
	}
	return -1, 0, nil
}
