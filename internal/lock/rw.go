package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/transport"
)

// RW is a lock that one writer holds, or any number of readers, each a rank. Ranks are served in the order in which they
// came; readers that stand next to each other hold it together, and none passes a writer that waits, so nobody starves.
// (The fair readers and writers of Courtois, Heymans, Parnas 1971 with one queue.) The zero RW is closed.
//
// Its state is a row of words on member 0, a word for each member, guarded by a Mutex; member 0's program takes no part.
// To take it when it is free and to release it costs a Mutex each, and a read and a store or two; a rank that waits spins on a word
// of its own memory, which whoever hands the lock on sets.
type RW struct {
	g      Group
	guard  *Mutex
	peers  []proto.Remote
	local  mem.Range
	busy   atomic.Bool      // a goroutine of this rank holds the lock or waits for it
	held   atomic.Uint64    // rwRead or rwWrite while this rank holds it
	turns  uint64           // waits of this rank, by which grants are told apart
	leaver leaver           // of whoever is busy
	race   *racecheck.Shelf // by how the lock was held, from rwRead on; nil: races are not looked for
}

// The block: on every member the grant, on member 0 the next place in the queue and a word for each member.
const (
	rwGrant = 0
	rwNext  = 64
	rwWords = lockWants // as in a Mutex's block: ownBytes is the size of both
)

// RWBytes is the size of the block of an RW of the group, on every member, beside its guard's.
func RWBytes(g Group) int { return ownBytes(len(g.Ranks)) + g.Races.ShelfBytes(2, 0) }

// Open makes an RW that nobody holds of zeroed blocks of RWBytes, this rank's and, by member, all, and of a Mutex for no other use.
func (l *RW) Open(g Group, guard *Mutex, peers []proto.Remote, local mem.Range) {
	l.g, l.guard, l.peers, l.local = g, guard, peers, local
	l.race = g.Races.Shelf(peers, ownBytes(len(g.Ranks)), 2, 0)
}

// Close lets nobody of this rank use the lock any more. The members have agreed that nobody does. The guard is its owner's.
func (l *RW) Close() { l.peers = nil }

// Lock waits for the lock to write. When a holder is gone, or closes its world, the lock is lost: this and every later call that needs it
// returns an error wrapping transport.ErrPeerGone that names the holder.
func (l *RW) Lock(ctx context.Context) error { return l.lock(ctx, "lock", rwWrite) }

// RLock waits for the lock to read; other readers may hold it at the same time. Otherwise as Lock. A rank holds it once:
// another goroutine of it waits until it is released.
func (l *RW) RLock(ctx context.Context) error { return l.lock(ctx, "lock to read", rwRead) }

// Unlock releases the lock that this rank holds to write, after making its earlier puts to all members visible.
func (l *RW) Unlock() error { return l.unlock("unlock", rwWrite) }

// RUnlock releases the lock that this rank holds to read.
func (l *RW) RUnlock() error { return l.unlock("unlock to read", rwRead) }

func (l *RW) lock(ctx context.Context, op string, how uint64) error {
	if l.peers == nil {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if err := l.g.occupy(ctx, op, &l.busy); err != nil {
		return err
	}
	err := l.take(ctx, op, how)
	if err != nil {
		l.busy.Store(false)
	} else {
		l.got(how)
	}
	l.g.Engine.Sched.Ring()
	return err
}

// take enters this member in the queue and waits until it holds the lock.
func (l *RW) take(ctx context.Context, op string, how uint64) error {
	l.turns = l.turns%rwTurn + 1 // never 0
	turn := l.turns
	l.local.Word64(rwGrant).Store(0) // an old grant may bear the same number
	place, err := l.g.Engine.Atomic(atom.Sum, atom.Word64(), &l.peers[0], rwNext, 1, 0)
	if err != nil {
		return err
	}
	holds := false
	err = l.guarded(ctx, func(words []uint64) error {
		words[l.g.Me] = rwWord(place+1, turn, how)
		if err := l.write(l.g.Me, words[l.g.Me]); err != nil {
			return err
		}
		if err := l.grant(words); err != nil {
			return err
		}
		holds = words[l.g.Me]&rwHolds != 0
		return nil
	})
	if err != nil {
		return l.withdraw(op, err) // it may stand in the queue already
	}
	if holds {
		return nil
	}
	w := rwWatch{l, turn}
	sp := l.g.Engine.Sched.Begin(ctx, sched.What{Op: op, Peer: sched.Anyone}, &w)
	defer sp.End()
	for l.local.Word64(rwGrant).Load() != turn {
		if err := sp.Step(); errors.Is(err, errMine) {
			break
		} else if err != nil {
			return l.withdraw(op, err)
		}
		if sp.Unsure() {
			holders, mine := l.look(turn)
			if mine {
				break // and the grant was lost: an earlier one, by another rank, was long on its way, and came behind it
			}
			if len(holders) > 0 {
				sp.For(holders[0])
			} else {
				sp.For(sched.Anyone)
			}
			if err := l.lostBy(holders); err != nil {
				return l.withdraw(op, err)
			}
		}
	}
	return nil
}

// lostBy returns an error if one of the ranks that held the lock a moment ago closes its world with it.
func (l *RW) lostBy(holders []int) error {
	return l.leaver.lostBy(&l.g, holders, func(rank int) bool {
		now, _ := l.look(0)
		return slices.Contains(now, rank)
	})
}

// look returns the ranks that hold the lock at the moment, as far as that can be read, and whether this one does, in its present turn.
func (l *RW) look(turn uint64) (holders []int, mine bool) {
	for m, r := range l.g.Ranks {
		word, err := l.g.Engine.Load64(&l.peers[0], rwWords+8*m) // others write them meanwhile
		switch {
		case err != nil:
			return holders, false
		case m == l.g.Me && rwTold(word, turn):
			return nil, true
		case word&rwHolds != 0:
			holders = append(holders, r)
		}
	}
	return holders, false
}

// rwTold reports whether a member whose word that is holds the lock in this turn of its.
func rwTold(word, turn uint64) bool { return word&rwHolds != 0 && word>>3&rwTurn == turn }

// withdraw leaves the queue because of cause. A lock that was granted meanwhile is handed on.
func (l *RW) withdraw(op string, cause error) error {
	err := l.guarded(context.Background(), func(words []uint64) error {
		words[l.g.Me] = 0
		return errors.Join(l.write(l.g.Me, 0), l.grant(words))
	})
	if err != nil && !errors.Is(cause, transport.ErrPeerGone) {
		return l.g.WaitError(op, -1, errors.Join(cause, err))
	}
	return l.g.WaitError(op, -1, cause)
}

func (l *RW) unlock(op string, how uint64) error {
	if l.peers == nil {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if !l.held.CompareAndSwap(how, 0) {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: this rank does not hold the lock so", ErrState))
	}
	// A put that failed is reported; the lock is released all the same.
	var errs []error
	l.g.Races.FlushedAll(l.peers)
	l.race.Release(0, int(how-rwRead), racecheck.CarryDone)
	for m := range l.peers {
		errs = append(errs, l.g.Engine.Flush(&l.peers[m]))
	}
	errs = append(errs, l.guarded(context.Background(), func(words []uint64) error {
		words[l.g.Me] = 0
		return errors.Join(l.write(l.g.Me, 0), l.grant(words))
	}))
	l.busy.Store(false)
	l.g.Engine.Sched.Ring()
	return errors.Join(errs...)
}

// TryLock takes the lock to write if nobody holds it, and returns whether it did. It stands in no queue and waits for no
// holder, only for others that enter or leave at this moment. Where nobody will ever get the lock, since its holder is gone, it
// returns the error of Lock, so that a loop over it ends.
func (l *RW) TryLock() (bool, error) { return l.try("lock", rwWrite) }

// TryRLock takes the lock to read if that takes no wait: nobody writes, and no writer stands in the queue. Otherwise as TryLock.
// It returns false while another goroutine of this rank holds the lock.
func (l *RW) TryRLock() (bool, error) { return l.try("lock to read", rwRead) }

func (l *RW) try(op string, how uint64) (bool, error) {
	if l.peers == nil {
		return false, transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if !l.busy.CompareAndSwap(false, true) {
		return false, nil
	}
	holds := false
	err := l.guarded(context.Background(), func(words []uint64) error {
		gone := func(m int) bool { return l.g.Engine.Peers.Check(l.g.Ranks[m]) != nil }
		if !rwMayEnter(words, l.g.Me, how, gone) {
			return nil
		}
		holds = true
		words[l.g.Me] = rwWord(0, 1, how) | rwHolds // the place of a holder is never looked at
		return errors.Join(l.write(l.g.Me, words[l.g.Me]), l.grant(words))
	})
	if err == nil && !holds {
		w := rwWatch{l, 0}
		if err = w.Interrupted(); err == nil && l.leaver.seldom() {
			holders, _ := l.look(0)
			err = l.lostBy(holders)
		}
		err = l.g.WaitError(op, -1, err) // nil of nil
	}
	if err != nil || !holds {
		l.busy.Store(false)
		l.g.Engine.Sched.Ring()
		return false, err
	}
	l.got(how)
	return true, nil
}

// got notes that this rank holds the lock.
func (l *RW) got(how uint64) {
	l.held.Store(how)
	l.race.Acquire(0, rwWrite-rwRead)
	if how == rwWrite {
		l.race.Acquire(0, 0)
	}
}

// guarded calls f with a copy of the members' words, which nobody else changes meanwhile.
func (l *RW) guarded(ctx context.Context, f func(words []uint64) error) error {
	if err := l.guard.Lock(ctx); err != nil {
		return err
	}
	words := make([]uint64, len(l.g.Ranks))
	err := l.g.Engine.Get(&l.peers[0], rwWords, mem.Of(words))
	if err == nil {
		err = f(words)
	}
	// The words are there before the guard goes on; what this rank has put elsewhere is no business of this lock's queue.
	err = errors.Join(err, l.g.Engine.Flush(&l.peers[0]), l.guard.unlock())
	l.guard.busy.Store(false)
	return err
}

// write sets a member's word; the guard's release makes it visible.
func (l *RW) write(member int, word uint64) error {
	return l.g.Engine.Store64(&l.peers[0], rwWords+8*member, word)
}

// grant makes holders of all that rwNextHolders names, and tells them.
func (l *RW) grant(words []uint64) error {
	gone := func(m int) bool { return l.g.Engine.Peers.Check(l.g.Ranks[m]) != nil }
	for _, m := range rwNextHolders(words, gone) {
		words[m] |= rwHolds
		if err := l.write(m, words[m]); err != nil {
			return err
		}
		if m == l.g.Me {
			continue
		}
		// A waiter that dies now holds the lock, and the next one who looks will see that.
		_ = l.g.Engine.Store64(&l.peers[m], rwGrant, words[m]>>3&rwTurn) // nobody waits for that: see take
	}
	return nil
}

// rwWatch ends a wait when a holder of the lock, or of its guard, or the rank that keeps its state, is gone, and where this rank's turn has come and who should have
// told it is.
type rwWatch struct {
	l    *RW
	turn uint64 // 0: this rank stands in no queue
}

// Interrupted implements sched.Watch.
func (w *rwWatch) Interrupted() error {
	g := &w.l.g
	if !g.Engine.Peers.AnyGone() {
		return g.Engine.Alive()
	}
	if err := g.Engine.Peers.Check(g.Ranks[0]); err != nil {
		return err
	}
	for m, r := range g.Ranks {
		gone := g.Engine.Peers.Check(r)
		if gone == nil {
			continue
		}
		word, err := g.Engine.Load64(&w.l.peers[0], rwWords+8*m)
		if err != nil {
			return err
		}
		if word&rwHolds != 0 {
			return fmt.Errorf("it held the lock: %w", gone)
		}
	}
	if w.turn != 0 {
		own, err := g.Engine.Load64(&w.l.peers[0], rwWords+8*g.Me)
		if err != nil {
			return err
		}
		if rwTold(own, w.turn) {
			return errMine
		}
	}
	return w.l.guard.lost() // then nobody hands the lock on
}
