package racecheck

import (
	"gopgas/internal/mem"
	"gopgas/internal/proto"
)

// Board is where the members of a team show each other their clocks when all of them meet. It lies in two halves in the
// team's memory; a member that writes to one half has been told by all that they have read it. A nil Board does
// nothing. One goroutine of a rank at a time uses it, as it does a barrier.
type Board struct {
	c     *Checker
	at    []proto.Remote // by member, a half of each
	local mem.Range      // this member's
	half  int            // that was written last
	bytes int            // of a half
}

// BoardBytes returns the size of a board on each member. Of a nil Checker it is 0.
func (c *Checker) BoardBytes() int {
	if c == nil {
		return 0
	}
	return 2 * c.recordBytes()
}

// Board returns a board at byte off, a multiple of 8, of the members' memory, of which local is this rank's. Of a nil
// Checker it is nil.
func (c *Checker) Board(members []proto.Remote, local mem.Range, off int) *Board {
	if c == nil {
		return nil
	}
	b := &Board{c: c, at: make([]proto.Remote, len(members)), local: local.Slice(off, c.BoardBytes()), bytes: c.recordBytes()}
	for m := range members {
		b.at[m] = members[m].At(off, c.BoardBytes())
	}
	return b
}

// Enter shows this rank's clock. The meeting begins after it.
func (b *Board) Enter() {
	if b == nil || b.c.off.Load() {
		return
	}
	b.c.enterSeen()
	b.half = 1 - b.half
	out := clock(mem.Slice[uint32](b.local.Slice(b.half*b.bytes, b.bytes)))
	b.c.mu.Lock()
	b.c.time.release(out[:clockLen(b.c.n)], 0, CarryDone)
	b.c.mu.Unlock()
	b.c.lookAgain()
}

// Leave takes over what all members have shown, after the meeting: this rank comes after whatever they did before it.
func (b *Board) Leave() {
	if b != nil {
		b.leave(0, len(b.at))
	}
}

// LeaveWith is Leave behind one member alone, where this rank has not waited for the others.
func (b *Board) LeaveWith(member int) { b.leave(member, member+1) }

// leave takes over what members lo to hi have shown.
func (b *Board) leave(lo, hi int) {
	if b == nil || b.c.off.Load() {
		return
	}
	b.c.enterSeen()
	theirs := make(clock, b.bytes/clockBytes)
	for m := lo; m < hi; m++ {
		r := &b.at[m]
		from := theirs
		if r.Mapped.Bytes != 0 {
			from = clock(mem.Slice[uint32](r.Mapped.Slice(b.half*b.bytes, b.bytes)))
		} else if err := b.c.e.Get(r, b.half*b.bytes, mem.Of(theirs)); err != nil {
			b.c.give(err)
			return
		}
		b.c.mu.Lock()
		b.c.time.now.join(from[:clockLen(b.c.n)])
		b.c.mu.Unlock()
	}
	b.c.lookAgain()
}
