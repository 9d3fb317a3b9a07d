package sched

import (
	"sync/atomic"
	"time"
)

// Bell is a rank's doorbell: a count of rings and a count of sleepers, in memory that the ranks which may ring
// it have mapped. The zero Bell cannot be used.
type Bell struct {
	rings, sleepers *atomic.Uint32
	sim             *Sim // rings in virtual time; nil in the other bodies
}

// NewBell returns the bell over two zeroed words of shared memory, for ranks that live in real time.
func NewBell(rings, sleepers *atomic.Uint32) Bell { return Bell{rings: rings, sleepers: sleepers} }

// NewBell returns the bell over two zeroed words of memory that this rank shares with the one that sleeps on it.
func (s *Sched) NewBell(rings, sleepers *atomic.Uint32) Bell {
	b := NewBell(rings, sleepers)
	if s.sim != nil {
		b.sim = s.sim.m
	}
	return b
}

// Ring wakes all who sleep, and reports whether anybody may. The caller has made their condition true with a sequentially consistent store.
func (b Bell) Ring() (heard bool) {
	if heard = b.sim != nil || b.sleepers.Load() != 0; heard {
		b.ring()
	}
	return heard
}

// ring is Ring where somebody may hear it.
func (b Bell) ring() {
	if b.sim != nil {
		b.sim.ringBell(b)
		return
	}
	b.rings.Add(1)
	futexWake(b.rings)
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
	if b.sim != nil {
		return b.sim.waitBell(b, seq, limit)
	}
	futexWait(b.rings, seq, limit)
	return b.rings.Load() != seq
}

// Event is a flag that one goroutine waits for and others set; it stays set until a Wait has taken it. The
// zero Event is ready.
type Event struct {
	set    atomic.Uint32
	waiter atomic.Pointer[Sched] // in virtual time: the rank of who waits or has waited
}

// Set wakes the waiter, or lets the next Wait return at once.
func (e *Event) Set() {
	if e.set.Swap(1) != 0 {
		return
	}
	if w := e.waiter.Load(); w != nil {
		w.Ring()
		return
	}
	futexWake(&e.set)
}

// Wait returns true when the event was set, and clears it; false after limit. s is the rank that waits.
func (e *Event) Wait(s *Sched, limit time.Duration) bool {
	if e.set.Swap(0) == 1 {
		return true
	}
	if s.sim != nil {
		e.waiter.Store(s)
		s.sim.waitFor(limit, func() bool { return e.set.Load() == 1 })
		return e.set.Swap(0) == 1
	}
	futexWait(&e.set, 0, limit)
	return e.set.Swap(0) == 1
}
