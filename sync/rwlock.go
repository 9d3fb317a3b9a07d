package pgsync

import (
	"context"
	"errors"

	"gopgas/internal/lock"
	"gopgas/internal/sched"
)

// RWLock is a lock that one writer holds, or any number of readers, each a rank. Ranks are served in the order in which they
// came; readers that stand next to each other hold it together, and none passes a writer that waits, so nobody starves.
// (The fair readers and writers of Courtois, Heymans, Parnas 1971 with one queue.)
//
// Its state is a row of words on member 0, a word for each member, guarded by a Lock; member 0's program takes no part.
// To take it when it is free and to release it costs a Lock each, and a read and a store or two; a rank that waits spins on a word
// of its own memory, which whoever hands the lock on sets.
type RWLock struct {
	held
	guard *Lock
	rw    lock.RW
}

// NewRWLock returns a lock that nobody holds. Collective.
func NewRWLock(ctx context.Context, t *Team) (*RWLock, error) {
	guard, err := NewLock(ctx, t)
	if err != nil {
		return nil, err
	}
	g := t.group()
	l := &RWLock{guard: guard}
	if err := l.hold(ctx, t, lock.RWBytes(g)); err != nil {
		if sched.Ended(ctx) == nil { // else the others may have the lock
			err = errors.Join(err, guard.Free(ctx))
		}
		return nil, err
	}
	l.rw.Open(g, &guard.m, l.block.Remotes(), l.block.Local())
	l.shut = l.rw.Close
	return l, nil
}

// Free gives the lock back. Collective.
func (l *RWLock) Free(ctx context.Context) error { return l.free(ctx, &l.guard.held) }

// Lock waits for the lock to write. When a holder is gone, or closes its world without having released it, the lock is lost: this and every later call that needs it
// returns an error wrapping transport.ErrPeerGone that names the holder.
func (l *RWLock) Lock(ctx context.Context) error { return l.rw.Lock(ctx) }

// RLock waits for the lock to read; other readers may hold it at the same time. Otherwise as Lock. A rank holds it once:
// another goroutine of it waits until it is released.
func (l *RWLock) RLock(ctx context.Context) error { return l.rw.RLock(ctx) }

// Unlock releases the lock that this rank holds to write, after making its earlier puts to all members visible.
func (l *RWLock) Unlock() error { return l.rw.Unlock() }

// RUnlock releases the lock that this rank holds to read.
func (l *RWLock) RUnlock() error { return l.rw.RUnlock() }

// TryLock takes the lock to write if nobody holds it, and returns whether it did. It stands in no queue and waits for no
// holder, only for others that enter or leave at this moment. Where nobody will ever get the lock, since its holder is gone, it
// returns the error of Lock, so that a loop over it ends.
func (l *RWLock) TryLock() (bool, error) { return l.rw.TryLock() }

// TryRLock takes the lock to read if that takes no wait: nobody writes, and no writer stands in the queue. Otherwise as TryLock.
// It returns false while another goroutine of this rank holds the lock.
func (l *RWLock) TryRLock() (bool, error) { return l.rw.TryRLock() }
