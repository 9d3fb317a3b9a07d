package pgsync

import (
	"context"
	"errors"
	"slices"

	"gopgas/transport"
)

// TryLock takes the lock to write if nobody holds it, and returns whether it did. It stands in no queue and waits for no
// holder, only for others that enter or leave at this moment. Where nobody will ever get the lock, since its holder is gone, it
// returns the error of Lock, so that a loop over it ends.
func (l *RWLock) TryLock() (bool, error) { return l.try("lock", rwWrite) }

// TryRLock takes the lock to read if that takes no wait: nobody writes, and no writer stands in the queue. Otherwise as TryLock.
// It returns false while another goroutine of this rank holds the lock.
func (l *RWLock) TryRLock() (bool, error) { return l.try("lock to read", rwRead) }

func (l *RWLock) try(op string, how uint64) (bool, error) {
	if l.peers == nil {
		return false, transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if !l.busy.CompareAndSwap(false, true) {
		return false, nil
	}
	holds := false
	err := l.guarded(context.Background(), func(words []uint64) error {
		gone := func(m int) bool { return l.t.e.Peers.Check(l.t.ranks[m]) != nil }
		if !rwMayEnter(words, l.t.me, how, gone) {
			return nil
		}
		holds = true
		words[l.t.me] = rwWord(0, 1, how) | rwHolds // the place of a holder is never looked at
		return errors.Join(l.write(l.t.me, words[l.t.me]), l.grant(words))
	})
	if err == nil && !holds {
		w := rwWatch{l}
		err = l.t.waitError(op, -1, w.Interrupted()) // nil of nil
	}
	if err != nil || !holds {
		l.busy.Store(false)
		l.t.e.Sched.Ring()
		return false, err
	}
	l.got(how)
	return true, nil
}

// got notes that this rank holds the lock.
func (l *RWLock) got(how uint64) {
	l.held.Store(how)
	l.race.Acquire(0, rwWrite-rwRead)
	if how == rwWrite {
		l.race.Acquire(0, 0)
	}
}

// rwMayEnter reports whether member me, who stands in no queue, may hold the lock at once: behind all that wait already.
func rwMayEnter(words []uint64, me int, how uint64, gone func(member int) bool) bool {
	with := slices.Clone(words)
	with[me] = rwWord(rwLast, 1, how)
	return slices.Contains(rwNextHolders(with, gone), me)
}

// rwLast is a place behind all others.
const rwLast = 1<<(64-rwShift) - 1
