package pgsync

import (
	"context"

	"gopgas/internal/lock"
)

// Lock is a mutual exclusion among the ranks of a team. Its state lives on member 0: the holder, and a word for
// each member that tells whether it waits. The one who releases hands the lock to the next waiter in the
// order of ranks, so none waits for ever, and a waiter spins on a word of its own memory.
type Lock struct {
	held
	m lock.Mutex
}

// NewLock returns a lock that nobody holds. Collective.
func NewLock(ctx context.Context, t *Team) (*Lock, error) {
	g := t.group()
	l := &Lock{}
	if err := l.hold(ctx, t, lock.MutexBytes(g)); err != nil {
		return nil, err
	}
	l.m.Open(g, l.block.Remotes(), l.block.Local())
	l.shut = l.m.Close
	return l, nil
}

// group is the team as its locks see it.
func (t *Team) group() lock.Group {
	return lock.Group{Engine: t.e, Ranks: t.ranks, Me: t.me, Races: t.races, Parting: t.Parting, WaitError: t.waitError}
}

// Free gives the lock back. Collective.
func (l *Lock) Free(ctx context.Context) error { return l.free(ctx) }

// TryLock takes the lock if nobody holds it, and returns whether it did. It waits for nobody. Where the holder is gone it
// returns the error of Lock, so that a loop over it ends.
func (l *Lock) TryLock() (bool, error) { return l.m.TryLock() }

// Lock waits for the lock. When its holder is gone, or closes its world without having released it, the lock is lost: this and every later call returns an
// error wrapping transport.ErrPeerGone that names the holder.
func (l *Lock) Lock(ctx context.Context) error { return l.m.Lock(ctx) }

// Unlock releases the lock, after making this rank's earlier puts to all members visible. It is an error if this
// rank does not hold the lock.
func (l *Lock) Unlock() error { return l.m.Unlock() }
