package sched

import (
	"sync/atomic"
	"time"
)

// Bell is a rank's doorbell: a count of rings and a count of sleepers, in memory that the ranks which may ring
// it have mapped. The zero Bell cannot be used.
type Bell struct{ rings, sleepers *atomic.Uint32 }

// NewBell returns the bell over two zeroed words of shared memory.
func NewBell(rings, sleepers *atomic.Uint32) Bell { return Bell{rings, sleepers} }

// Ring wakes all who sleep. The caller has made their condition true with a sequentially consistent store.
func (b Bell) Ring() {
	if b.sleepers.Load() != 0 {
		b.rings.Add(1)
		futexWake(b.rings)
	}
}

// Arm announces a sleeper and returns the count to wait on. Each Arm is followed by one Disarm.
func (b Bell) Arm() uint32 {
	seq := b.rings.Load()
	b.sleepers.Add(1)
	return seq
}

// Disarm takes the announcement back.
func (b Bell) Disarm() { b.sleepers.Add(^uint32(0)) }

// Wait sleeps until somebody has rung since Arm returned seq, and reports that, or until limit has passed.
func (b Bell) Wait(seq uint32, limit time.Duration) bool {
	futexWait(b.rings, seq, limit)
	return b.rings.Load() != seq
}

// Event is a flag that one goroutine waits for and others set; it stays set until a Wait has taken it. The
// zero Event is ready.
type Event struct{ set atomic.Uint32 }

// Set wakes the waiter, or lets the next Wait return at once.
func (e *Event) Set() {
	if e.set.Swap(1) == 0 {
		futexWake(&e.set)
	}
}

// Wait returns true when the event was set, and clears it; false after limit.
func (e *Event) Wait(limit time.Duration) bool {
	if e.set.Swap(0) == 1 {
		return true
	}
	futexWait(&e.set, 0, limit)
	return e.set.Swap(0) == 1
}
