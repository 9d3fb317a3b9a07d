package pgsync

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/racecheck"
	"gopgas/internal/sched"
	"gopgas/internal/symheap"
	"gopgas/transport"
)

// RWLock is a lock that one writer holds, or any number of readers, each a rank. Ranks are served in the order in which they
// came; readers that stand next to each other hold it together, and none passes a writer that waits, so nobody starves.
// (The fair readers and writers of Courtois, Heymans, Parnas 1971 with one queue.)
//
// Its state is a row of words on member 0, a word for each member, guarded by a Lock; member 0's program takes no part.
// To take it when it is free and to release it costs a Lock each, and a read and a store or two; a rank that waits spins on a word
// of its own memory, which whoever hands the lock on sets.
type RWLock struct {
	t     *Team
	guard *Lock
	block *symheap.Block
	peers []proto.Remote
	local mem.Range
	busy  atomic.Bool      // a goroutine of this rank holds the lock or waits for it
	held  atomic.Uint64    // rwRead or rwWrite while this rank holds it
	turns uint64           // waits of this rank, by which grants are told apart
	race  *racecheck.Shelf // by how the lock was held, from rwRead on; nil: races are not looked for
}

// The block: on every member the grant, on member 0 the next place in the queue and a word for each member.
const (
	rwGrant = 0
	rwNext  = 64
	rwWords = 128
)

// A member's word: 0, or its place in the queue, and below that the wait's number, whether it holds, and how.
const (
	rwRead  = 1
	rwWrite = 2
	rwHow   = 3
	rwHolds = 4
	rwShift = 16 // the place; bits 3 to 15 have the number of the wait
	rwTurn  = 1<<13 - 1
)

// rwWord packs a member's word.
func rwWord(place, turn, how uint64) uint64 { return place<<rwShift | turn<<3 | how }

// NewRWLock returns a lock that nobody holds. Collective.
func NewRWLock(ctx context.Context, t *Team) (*RWLock, error) {
	guard, err := NewLock(ctx, t)
	if err != nil {
		return nil, err
	}
	bytes := (rwWords + 8*t.Size() + 63) &^ 63
	block, err := t.alloc(ctx, bytes+t.races.ShelfBytes(2, 0))
	if err != nil {
		return nil, err
	}
	l := &RWLock{t: t, guard: guard, block: block, peers: block.Remotes(), local: block.Local()}
	l.race = t.races.Shelf(l.peers, bytes, 2, 0)
	return l, nil
}

// Free gives the lock back. Collective.
func (l *RWLock) Free(ctx context.Context) error {
	if l.block == nil {
		return transport.NewOpError("free", -1, transport.ErrClosed)
	}
	err := l.t.free(ctx, l.block)
	l.block, l.peers = nil, nil
	return errors.Join(err, l.guard.Free(ctx))
}

// Lock waits for the lock to write. When a holder is gone, the lock is lost: this and every later call that needs it
// returns an error wrapping transport.ErrPeerGone that names the holder.
func (l *RWLock) Lock(ctx context.Context) error { return l.lock(ctx, "lock", rwWrite) }

// RLock waits for the lock to read; other readers may hold it at the same time. Otherwise as Lock. A rank holds it once:
// another goroutine of it waits until it is released.
func (l *RWLock) RLock(ctx context.Context) error { return l.lock(ctx, "lock to read", rwRead) }

// Unlock releases the lock that this rank holds to write, after making its earlier puts to all members visible.
func (l *RWLock) Unlock() error { return l.unlock("unlock", rwWrite) }

// RUnlock releases the lock that this rank holds to read.
func (l *RWLock) RUnlock() error { return l.unlock("unlock to read", rwRead) }

func (l *RWLock) lock(ctx context.Context, op string, how uint64) error {
	if l.peers == nil {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if err := l.t.wait(ctx, op, func() bool { return l.busy.CompareAndSwap(false, true) }); err != nil {
		return err
	}
	err := l.take(ctx, op, how)
	if err != nil {
		l.busy.Store(false)
	} else {
		l.got(how)
	}
	l.t.e.Sched.Ring()
	return err
}

// take enters this member in the queue and waits until it holds the lock.
func (l *RWLock) take(ctx context.Context, op string, how uint64) error {
	l.turns = l.turns%rwTurn + 1 // never 0
	turn := l.turns
	l.local.Word64(rwGrant).Store(0) // an old grant may bear the same number
	place, err := l.t.e.Atomic(proto.Sum, proto.Word64(), &l.peers[0], rwNext, 1, 0)
	if err != nil {
		return err
	}
	holds := false
	err = l.guarded(ctx, func(words []uint64) error {
		words[l.t.me] = rwWord(place+1, turn, how)
		if err := l.write(l.t.me, words[l.t.me]); err != nil {
			return err
		}
		if err := l.grant(words); err != nil {
			return err
		}
		holds = words[l.t.me]&rwHolds != 0
		return nil
	})
	if err != nil {
		return l.withdraw(op, err) // it may stand in the queue already
	}
	if holds {
		return nil
	}
	w := rwWatch{l}
	sp := l.t.e.Sched.Begin(ctx, sched.What{Op: op, Peer: l.t.ranks[0]}, &w)
	defer sp.End()
	for l.local.Word64(rwGrant).Load() != turn {
		if err := sp.Step(); err != nil {
			return l.withdraw(op, err)
		}
	}
	return nil
}

// withdraw leaves the queue because of cause. A lock that was granted meanwhile is handed on.
func (l *RWLock) withdraw(op string, cause error) error {
	err := l.guarded(context.Background(), func(words []uint64) error {
		words[l.t.me] = 0
		return errors.Join(l.write(l.t.me, 0), l.grant(words))
	})
	if err != nil && !errors.Is(cause, transport.ErrPeerGone) {
		return l.t.waitError(op, -1, errors.Join(cause, err))
	}
	return l.t.waitError(op, -1, cause)
}

func (l *RWLock) unlock(op string, how uint64) error {
	if l.peers == nil {
		return transport.NewOpError(op, -1, transport.ErrClosed)
	}
	if !l.held.CompareAndSwap(how, 0) {
		return transport.NewOpError(op, -1, fmt.Errorf("%w: this rank does not hold the lock so", ErrState))
	}
	// A put that failed is reported; the lock is released all the same.
	var errs []error
	l.t.races.FlushedAll(l.peers)
	l.race.Release(0, int(how-rwRead), racecheck.CarryDone)
	for m := range l.peers {
		errs = append(errs, l.t.e.Flush(&l.peers[m]))
	}
	errs = append(errs, l.guarded(context.Background(), func(words []uint64) error {
		words[l.t.me] = 0
		return errors.Join(l.write(l.t.me, 0), l.grant(words))
	}))
	l.busy.Store(false)
	l.t.e.Sched.Ring()
	return errors.Join(errs...)
}

// guarded calls f with a copy of the members' words, which nobody else changes meanwhile.
func (l *RWLock) guarded(ctx context.Context, f func(words []uint64) error) error {
	if err := l.guard.Lock(ctx); err != nil {
		return err
	}
	words := make([]uint64, l.t.Size())
	err := l.t.e.Get(&l.peers[0], rwWords, mem.Of(words))
	if err == nil {
		err = f(words)
	}
	// The words are there before the guard goes on; what this rank has put elsewhere is no business of this lock's queue.
	err = errors.Join(err, l.t.e.Flush(&l.peers[0]), l.guard.unlock())
	l.guard.busy.Store(false)
	return err
}

// write sets a member's word; the guard's release makes it visible.
func (l *RWLock) write(member int, word uint64) error {
	return l.t.e.Store64(&l.peers[0], rwWords+8*member, word)
}

// grant makes holders of all that rwNextHolders names, and tells them.
func (l *RWLock) grant(words []uint64) error {
	gone := func(m int) bool { return l.t.e.Peers.Check(l.t.ranks[m]) != nil }
	for _, m := range rwNextHolders(words, gone) {
		words[m] |= rwHolds
		if err := l.write(m, words[m]); err != nil {
			return err
		}
		if m == l.t.me {
			continue
		}
		// A waiter that dies now holds the lock, and the next one who looks will see that.
		_ = l.t.e.Store64(&l.peers[m], rwGrant, words[m]>>3&rwTurn)
	}
	return nil
}

// rwNextHolders returns who may hold the lock now beside those that do: the waiters in the order of their places, as far
// as they fit together. Waiters that are gone are passed over; a holder that is gone keeps what it holds.
func rwNextHolders(words []uint64, gone func(member int) bool) []int {
	readers, writer := 0, false
	for _, w := range words {
		if w&rwHolds != 0 {
			writer = writer || w&rwHow == rwWrite
			readers++
		}
	}
	var next []int
	for last := uint64(0); ; {
		first := -1
		for m, w := range words {
			if w == 0 || w&rwHolds != 0 || w>>rwShift <= last || gone(m) {
				continue
			}
			if first < 0 || w>>rwShift < words[first]>>rwShift {
				first = m
			}
		}
		if first < 0 || writer || words[first]&rwHow == rwWrite && readers > 0 {
			return next
		}
		next = append(next, first)
		last = words[first] >> rwShift
		readers++
		writer = words[first]&rwHow == rwWrite
	}
}

// rwWatch ends a wait when a holder of the lock, or the rank that keeps its state, is gone.
type rwWatch struct{ l *RWLock }

// Interrupted implements sched.Watch.
func (w *rwWatch) Interrupted() error {
	t := w.l.t
	if !t.e.Peers.AnyGone() {
		return t.e.Alive()
	}
	if err := t.e.Peers.Check(t.ranks[0]); err != nil {
		return err
	}
	for m, r := range t.ranks {
		gone := t.e.Peers.Check(r)
		if gone == nil {
			continue
		}
		word, err := t.e.Load64(&w.l.peers[0], rwWords+8*m)
		if err != nil {
			return err
		}
		if word&rwHolds != 0 {
			return fmt.Errorf("it held the lock: %w", gone)
		}
	}
	return nil
}
