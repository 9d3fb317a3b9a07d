package racecheck

import (
	"context"
	"slices"

	"gopgas/internal/atom"
	"gopgas/internal/mem"
	"gopgas/internal/proto"
	"gopgas/internal/sched"
)

// Shelf is memory on every member of a team that holds the clocks of things that order ranks, and the cells of elements.
// Everybody reaches everybody's: the owner of a part takes no step. A nil Shelf does nothing.
type Shelf struct {
	c      *Checker
	at     []proto.Remote // by member
	clocks int            // on each member
	rows   int            // elements with cells on each member
}

// The word of a shelf's lock.
const (
	shelfFree   = iota
	shelfTaken  // and nobody has come meanwhile
	shelfWanted // somebody may wait for it
)

// A shelf, in bytes: its lock, its clocks, each behind the key that it is used for, and its cells.
const (
	shelfLock  = 0
	shelfStart = 64
	keyBytes   = 8
	clockBytes = 4
)

func (c *Checker) recordBytes() int { return keyBytes + (clockLen(c.n)*clockBytes+7)/8*8 }

func (c *Checker) rowBytes() int { return width(c.n) * cellBytes }

// ShelfBytes returns the size of a shelf on each member. Of a nil Checker it is 0.
func (c *Checker) ShelfBytes(clocks, rows int) int {
	if c == nil {
		return 0
	}
	return shelfStart + clocks*c.recordBytes() + rows*c.rowBytes()
}

// Shelf returns a shelf in zeroed memory that begins at byte off, a multiple of 64, of each member's. Of a nil Checker it
// is nil.
func (c *Checker) Shelf(members []proto.Remote, off, clocks, rows int) *Shelf {
	if c == nil {
		return nil
	}
	s := &Shelf{c: c, at: make([]proto.Remote, len(members)), clocks: clocks, rows: rows}
	for m := range members {
		s.at[m] = members[m].At(off, c.ShelfBytes(clocks, rows))
	}
	return s
}

// clockBudget bounds what the clocks of one shelf take on each member, in bytes.
const clockBudget = 4 << 20

// Clocks returns how many clocks a shelf for so many things gets: as many as there are things, where that is not too much;
// else several share one. Of a nil Checker it is 0.
func (c *Checker) Clocks(things int) int {
	if c == nil {
		return 0
	}
	return max(1, min(things, clockBudget/c.recordBytes()))
}

// lock keeps everybody else out of a member's shelf. It returns false where the check has ended.
func (s *Shelf) lock(member int) bool {
	e := s.c.e
	r := &s.at[member]
	if s.c.ended() {
		return false
	}
	old, err := e.Atomic(atom.CompareSwap, atom.Word64(), r, shelfLock, shelfFree, shelfTaken)
	if err == nil && old == shelfFree {
		return true
	}
	sp := e.Sched.Begin(context.Background(), sched.What{Op: "race check", Peer: r.Rank}, (*watch)(s.c))
	defer sp.End()
	for err == nil && old != shelfFree {
		if s.c.ended() { // by who has the lock, perhaps, and cannot give it back
			return false
		}
		if err = sp.Step(); err == nil {
			old, err = e.Atomic(atom.Replace, atom.Word64(), r, shelfLock, shelfWanted, 0)
		}
	}
	if err != nil {
		s.c.give(err)
	}
	return err == nil
}

// unlock makes what was written visible and lets the next one in. It rings only where somebody may wait for the shelf: a wait that acquires at
// every look, as one for any of some signals, would have its own rank look again and again.
func (s *Shelf) unlock(member int) {
	r := &s.at[member]
	var old uint64
	err := s.c.e.Flush(r)
	if err == nil {
		old, err = s.c.e.Atomic(atom.Replace, atom.Word64(), r, shelfLock, shelfFree, 0)
	}
	if err != nil {
		s.c.give(err)
		return
	}
	if old == shelfWanted {
		s.c.e.Peers.Ring(r.Rank)
	}
}

// watch ends the check when a rank is gone: it may have held the lock of a shelf.
type watch Checker

// Interrupted implements sched.Watch.
func (w *watch) Interrupted() error {
	if w.e.Peers.AnyGone() {
		return errGone
	}
	return w.e.Alive()
}

// words returns n 8-byte words from byte off of a locked shelf: the memory itself where it is mapped, else what has been
// fetched to buf, which is as long.
func (s *Shelf) words(member, off, n int, buf *[]uint64) []uint64 {
	r := &s.at[member]
	if r.Mapped.Bytes != 0 {
		return mem.Slice[uint64](r.Mapped.Slice(off, 8*n))
	}
	if cap(*buf) < n {
		*buf = make([]uint64, n)
	}
	got := (*buf)[:n]
	if err := s.c.e.Get(r, off, mem.Of(got)); err != nil {
		s.c.give(err)
		clear(got)
	}
	return got
}

// put writes words back.
func (s *Shelf) put(member, off int, words []uint64) {
	r := &s.at[member]
	if r.Mapped.Bytes != 0 || s.c.off.Load() {
		return
	}
	if err := s.c.e.Put(r, off, mem.Of(words)); err != nil {
		s.c.give(err)
	}
}

// record is where a clock lies on a member's shelf, and the words of its record.
func (s *Shelf) record(slot int) (off, words int) {
	bytes := s.c.recordBytes()
	return shelfStart + slot*bytes, bytes / 8
}

// clockOf returns the clock in a record, and takes it for thing key. Things that share one are known to be in order when
// they need not be.
func (s *Shelf) clockOf(record []uint64, key int) clock {
	switch record[0] {
	case 0:
		record[0] = uint64(key) + 1
	case uint64(key) + 1:
	default:
		s.c.tell(noteShared)
	}
	return clock(mem.Slice[uint32](mem.Of(record[1:]))[:clockLen(s.c.n)])
}

// Release says that whoever acquires thing key of the member from here on comes after what this rank has done, and how
// much of it: see Carry. What makes others acquire follows the call.
func (s *Shelf) Release(member, key int, how Carry) {
	if s != nil {
		s.lockedRelease(member, key, how)
	}
}

func (s *Shelf) lockedRelease(member, key int, how Carry) {
	s.c.enterSeen()
	defer s.c.lookAgain()
	if s.lock(member) {
		defer s.unlock(member)
		s.release(member, key%s.clocks, key, how)
	}
}

// Acquire says that this rank comes after all that have released thing key of the member.
func (s *Shelf) Acquire(member, key int) {
	if s != nil {
		s.lockedAcquire(member, key)
	}
}

func (s *Shelf) lockedAcquire(member, key int) {
	s.c.enterSeen()
	defer s.c.lookAgain()
	if s.lock(member) {
		defer s.unlock(member)
		s.acquire(member, key%s.clocks, key)
	}
}

// release writes this rank's clock to one of a locked shelf.
func (s *Shelf) release(member, slot, key int, how Carry) {
	off, n := s.record(slot)
	var buf []uint64
	words := s.words(member, off, n, &buf)
	out := make(clock, clockLen(s.c.n))
	s.c.mu.Lock()
	s.c.time.release(out, s.at[member].Rank, how)
	s.c.mu.Unlock()
	s.clockOf(words, key).join(out)
	s.put(member, off, words)
}

// acquire reads it.
func (s *Shelf) acquire(member, slot, key int) {
	off, n := s.record(slot)
	var buf []uint64
	words := s.words(member, off, n, &buf)
	s.c.learn(s.clockOf(words, key))
}

// peek returns what acquire would learn.
func (s *Shelf) peek(member, slot, key int) clock {
	off, n := s.record(slot)
	var buf []uint64
	words := s.words(member, off, n, &buf)
	return slices.Clone(s.clockOf(words, key))
}

// learn says that this rank comes after all that k knows.
func (c *Checker) learn(k clock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time.now.join(k)
}
