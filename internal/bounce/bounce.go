// Package bounce is a pool of equal slots of registered memory through which unregistered payloads travel.
// A Pool is not safe for concurrent use: its owner's lock guards it.
package bounce

import (
	"slices"

	"gopgas/internal/invariants"
	"gopgas/internal/mem"
)

// Pool hands out slots of one registered range.
type Pool struct {
	memory    mem.Range
	slotBytes int
	free      []int32
}

// New divides memory into slots of slotBytes; a rest is left unused.
func New(memory mem.Range, slotBytes int) *Pool {
	p := &Pool{memory: memory, slotBytes: slotBytes}
	for i := memory.Bytes/slotBytes - 1; i >= 0; i-- {
		p.free = append(p.free, int32(i))
	}
	return p
}

// SlotBytes returns the size of a slot.
func (p *Pool) SlotBytes() int { return p.slotBytes }

// Bytes returns the size of the pool's memory.
func (p *Pool) Bytes() int { return p.memory.Bytes }

// Take returns a free slot; ok is false if there is none. The slot last given back is taken first: it is
// still in the cache.
func (p *Pool) Take() (slot int32, ok bool) {
	if len(p.free) == 0 {
		return 0, false
	}
	slot = p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return slot, true
}

// Give returns a slot to the pool.
func (p *Pool) Give(slot int32) {
	if invariants.Enabled {
		invariants.Check(!slices.Contains(p.free, slot), "a slot is given back twice")
		invariants.Mangle(p.Range(slot).Data())
	}
	p.free = append(p.free, slot)
}

// Free returns how many slots are free.
func (p *Pool) Free() int { return len(p.free) }

// Range returns the memory of a slot.
func (p *Pool) Range(slot int32) mem.Range {
	return p.memory.Slice(int(slot)*p.slotBytes, p.slotBytes)
}
