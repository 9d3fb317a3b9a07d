package window

import (
	"context"
	"errors"
	"fmt"

	"gopgas/internal/atom"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// LockKind says with whom a lock can be shared.
type LockKind uint8

// The kinds of locks.
const (
	LockShared    LockKind = iota // with other shared ones
	LockExclusive                 // with nobody
)

// lockWord is the state of a member's lock: from the low bits, 24 for the holders of shared locks, 24 for members that
// wait for an exclusive one, 16 for its holder's member number plus one. Who waits for an exclusive lock goes before new
// shared ones, so that these cannot keep it out for ever.
type lockWord uint64

const (
	oneShared   lockWord = 1
	oneWaiting  lockWord = 1 << 24
	oneHolder   lockWord = 1 << 48
	mostMembers          = 1<<16 - 1
)

func (l lockWord) shared() int  { return int(l & (oneWaiting - 1)) }
func (l lockWord) waiting() int { return int(l / oneWaiting & (oneWaiting - 1)) }

// holder returns the member that holds the lock exclusively; -1: none.
func (l lockWord) holder() int { return int(l/oneHolder) - 1 }

// take returns the word after member me has taken the lock; ok is false while it cannot. announced says that me is among
// those who wait.
func (l lockWord) take(kind LockKind, me int, announced bool) (next lockWord, ok bool) {
	switch {
	case l.holder() >= 0:
		return l, false
	case kind == LockShared:
		return l + oneShared, l.waiting() == 0
	case announced:
		return l - oneWaiting + lockWord(me+1)*oneHolder, l.shared() == 0
	}
	return l + lockWord(me+1)*oneHolder, l.shared() == 0 && l.waiting() == 0
}

// release returns what has to be added to the word to release a lock.
func (kind LockKind) release(me int) uint64 {
	if kind == LockShared {
		return ^uint64(oneShared) + 1
	}
	return -uint64(lockWord(me+1) * oneHolder)
}

// Lock opens an access epoch to target: it waits for the target's lock, which keeps out the exclusive locks of others,
// and their shared ones if kind is LockExclusive. It does not keep out those that do not lock. Unlock ends the epoch.
// The lock is this rank's, whichever goroutine took it. A lock whose holder is gone, or closes its world without Unlock, is lost:
// waiting for it is an error that wraps transport.ErrPeerGone. Of shared ones that is known when all other members close theirs. Where ctx has ended no lock is taken, a free one neither; so it is with LockAll and Start.
func (w *Window[T]) Lock(ctx context.Context, target int, kind LockKind) error {
	return w.c.lock(ctx, target, kind)
}

func (w *core) lock(ctx context.Context, target int, kind LockKind) error {
	const op = "lock"
	p, err := w.epochs(op)
	if err != nil {
		return err
	}
	if err := w.group(op, []int{target}); err != nil {
		return err
	}
	if kind > LockExclusive {
		return transport.NewOpError(op, w.remotes[target].Rank, fmt.Errorf("%w: lock of kind %d", ErrEpoch, kind))
	}
	if err := sched.Ended(ctx); err != nil {
		return transport.NewOpError(op, w.remotes[target].Rank, err)
	}
	if err := p.begin(target, func(s epoch) (epoch, error) { return s.lock(target) }); err != nil {
		return transport.NewOpError(op, w.remotes[target].Rank, err)
	}
	if err = w.lockOne(ctx, target, kind, false); err == nil {
		w.race.LockTaken(target, kind == LockExclusive)
		p.mu.Lock()
		p.kinds[target] = kind
		p.mu.Unlock()
	}
	p.begun(target, err, func(s epoch) (epoch, error) { return s.unlock(target) })
	return err
}

// Unlock ends the epoch that Lock of target opened: what this rank has moved is visible there, and then the lock free.
// It flushes this window only: what the lock guards in others their own Flush makes visible, before it.
func (w *Window[T]) Unlock(target int) error { return w.c.unlock(target) }

func (w *core) unlock(target int) error {
	const op = "unlock"
	p, err := w.epochs(op)
	if err != nil {
		return err
	}
	if err := w.group(op, []int{target}); err != nil {
		return err
	}
	var kind LockKind
	err = p.end(fmt.Sprint("unlock of ", target), target, func(s epoch) (epoch, error) {
		kind = p.kinds[target] // which stays there: who locks it next writes his own
		return s.unlock(target)
	})
	if err != nil {
		return transport.NewOpError(op, w.remotes[target].Rank, err)
	}
	w.team.RaceCheck().Flushed(w.remotes[target].Rank)
	w.race.LockGiven(target, kind == LockExclusive)
	// A transfer that failed is reported; the lock is released all the same.
	r := &w.remotes[target]
	if w.e.Before(r, &p.ctl[target]) { // one wait for both
		err = w.unlockOne(target, kind)
		return errors.Join(w.e.Flush(r), err)
	}
	return errors.Join(w.e.Flush(r), w.unlockOne(target, kind))
}

// LockAll opens an access epoch to all members, by a shared lock of each. While it waits for one it holds none.
// UnlockAll ends it.
func (w *Window[T]) LockAll(ctx context.Context) error { return w.c.lockAll(ctx) }

func (w *core) lockAll(ctx context.Context) error {
	const op = "lock-all"
	p, err := w.epochs(op)
	if err != nil {
		return err
	}
	if err := sched.Ended(ctx); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	if err := p.begin(everyone, epoch.lockAll); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	if err = w.lockEach(ctx); err == nil {
		for m := range w.remotes {
			w.race.LockTaken(m, false)
		}
	}
	p.begun(everyone, err, epoch.unlockAll)
	return err
}

// lockEach takes all shared locks. Who held some while it waits for another could wait for one that does the same.
func (w *core) lockEach(ctx context.Context) error {
	n := len(w.remotes)
	for first := 0; ; { // the one that could not be had; it is waited for first
		if err := w.lockOne(ctx, first, LockShared, true); err != nil {
			return err
		}
		for i := 1; ; i++ {
			if i == n {
				return nil
			}
			m := (first + i) % n
			ok, err := w.tryFree(m, LockShared)
			if ok {
				continue
			}
			for k := range i {
				err = errors.Join(err, w.unlockOne((first+k)%n, LockShared))
			}
			if err != nil {
				return err
			}
			first = m
			break
		}
	}
}

// UnlockAll ends the epoch that LockAll opened: what this rank has moved is visible, and the locks are free. As Unlock it flushes this
// window only.
func (w *Window[T]) UnlockAll() error { return w.c.unlockAll() }

func (w *core) unlockAll() error {
	const op = "unlock-all"
	p, err := w.epochs(op)
	if err != nil {
		return err
	}
	if err := p.end(op, everyone, epoch.unlockAll); err != nil {
		return transport.NewOpError(op, -1, err)
	}
	var errs []error
	w.team.RaceCheck().FlushedAll(w.remotes)
	for m := range w.remotes {
		w.race.LockGiven(m, false)
		errs = append(errs, w.e.Flush(&w.remotes[m]), w.unlockOne(m, LockShared))
	}
	return errors.Join(errs...)
}

// lockAtomic performs an atomic on a member's lock word.
func (w *core) lockAtomic(target int, op atom.Op, x, y uint64) (lockWord, error) {
	if err := w.e.Gone("lock", w.ep.ctl[target].Rank); err != nil {
		return 0, err
	}
	old, err := w.e.Atomic(op, atom.Word64(), &w.ep.ctl[target], lockOff, x, y)
	return lockWord(old), err
}

// tryLock takes a lock if it can be had, and returns the word that it saw.
func (w *core) tryLock(target int, kind LockKind, announced bool) (ok bool, seen lockWord, err error) {
	if err := w.e.Gone("lock", w.ep.ctl[target].Rank); err != nil {
		return false, 0, err
	}
	word, err := w.e.Load64(&w.ep.ctl[target], lockOff)
	if err != nil {
		return false, 0, err
	}
	return w.lockFrom(target, kind, announced, word)
}

// tryFree is tryLock for who has not announced itself and takes the lock for free: where it is, that saves a look at it, which may be
// a way to another machine and back, and where it is not the look is what the attempt brings.
func (w *core) tryFree(target int, kind LockKind) (ok bool, err error) {
	ok, _, err = w.lockFrom(target, kind, false, 0)
	return ok, err
}

// lockFrom is tryLock for who believes that the lock's word is word.
func (w *core) lockFrom(target int, kind LockKind, announced bool, word uint64) (ok bool, seen lockWord, err error) {
	for err == nil {
		next, can := lockWord(word).take(kind, w.team.Rank(), announced)
		if !can {
			return false, lockWord(word), nil
		}
		var old lockWord
		if old, err = w.lockAtomic(target, atom.CompareSwap, word, uint64(next)); err == nil && uint64(old) == word {
			return true, next, nil
		}
		word = uint64(old)
	}
	return false, 0, err
}

// lockOne waits for a lock; if all, for who needs those of the other members too.
func (w *core) lockOne(ctx context.Context, target int, kind LockKind, all bool) error {
	const op = "lock"
	rank := w.remotes[target].Rank
	ok, err := w.tryFree(target, kind)
	if err != nil || ok {
		return err
	}
	announced := kind == LockExclusive
	if announced {
		if _, err := w.lockAtomic(target, atom.Sum, uint64(oneWaiting), 0); err != nil {
			return err
		}
	}
	watch := lockWatch{w: w, target: target, all: all}
	closes := parted{w: w}
	var lost error // whoever holds the lock closes his world, if it is held still as it was
	sp := w.e.Sched.Begin(ctx, sched.What{Op: op, Peer: sched.Anyone}, &watch)
	defer sp.End()
	for {
		before := watch.seen
		ok, watch.seen, err = w.tryLock(target, kind, announced)
		if ok || err != nil {
			return err
		}
		if lost == nil || watch.seen != before {
			lost, err = nil, sp.Step()
		} else {
			err = fmt.Errorf("it holds the lock: %w", lost)
		}
		if err == nil && sp.Unsure() {
			if h := watch.seen.holder(); h >= 0 {
				sp.For(w.remotes[h].Rank)
				lost = closes.of(h)
			} else { // of those that share it nobody keeps a list
				lost = closes.all()
			}
		}
		if err != nil {
			if announced {
				_, werr := w.lockAtomic(target, atom.Sum, ^uint64(oneWaiting)+1, 0)
				err = errors.Join(err, werr)
				w.ringAll() // shared locks may have waited for this one
			}
			return transport.NewOpError(op, rank, err)
		}
	}
}

// unlockOne gives a lock back and wakes those who may wait for it.
func (w *core) unlockOne(target int, kind LockKind) error {
	if _, err := w.lockAtomic(target, atom.Sum, kind.release(w.team.Rank()), 0); err != nil {
		return err
	}
	w.ringAll()
	return nil
}

func (w *core) ringAll() {
	for m := range w.remotes {
		w.e.Peers.Ring(w.remotes[m].Rank)
	}
}

// lockWatch ends a wait for a lock when its member is gone, when its holder is, or when it may be held, shared, by any
// member that is gone: nobody keeps a list of those. Of all locks it ends the wait when any member is gone.
type lockWatch struct {
	w      *core
	target int
	all    bool
	seen   lockWord
}

// Interrupted implements sched.Watch.
func (l *lockWatch) Interrupted() error {
	w := l.w
	if err := w.e.Alive(); err != nil {
		return err
	}
	if !w.e.Peers.AnyGone() {
		return nil
	}
	if err := w.e.Peers.Check(w.remotes[l.target].Rank); err != nil {
		return err
	}
	if h := l.seen.holder(); h >= 0 {
		if err := w.e.Peers.Check(w.remotes[h].Rank); err != nil {
			return fmt.Errorf("it held the lock: %w", err)
		}
		if !l.all {
			return nil
		}
	}
	return w.team.Interrupted()
}
