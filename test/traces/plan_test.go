// Package traces runs random traces in which ranks meet: they contend for elements by every atomic and under a lock, tell each
// other by signals, straight and by way of a third, and look before the fence. What they leave in memory, and what they
// return, is compared with a sequential oracle, for elements of many widths over NICs with random shortcomings. Which way an operation takes must never change a result.
//
// A trace is a list of phases with a fence between them. Within a phase every element has one use, so that the outcome is
// determined: it is read by all; or written by one rank, which orders its own overlapping puts; or combined by all with one
// commutative operation; or counted by fetching atomics whose answers are known as a set; or changed under the lock.
package traces

import (
	"math/rand/v2"

	pgsync "gopgas/sync"
)

// use is what a phase does with a range of elements.
type use uint8

const (
	readOnly use = iota
	exclusive
	combined
	counted
	swapped
	locked
	numUses
)

// kind is one step of a rank.
type kind uint8

const (
	opPut kind = iota
	opPutNB
	opGet
	opGetNB
	opWaitAll // for all transfers in flight
	opFlush
	opFlushAll
	opOrder
	opAccumulate
	opCount // fetch-add; the answers of all are a range
	opCountCAS
	opSwap    // the answers and the last value are what was put in and what was there
	opLocked  // get, add, put under the lock
	opSignal  // PutSignal: data, and word sig on the target becomes the phase
	opNotify  // Set of word sig on the target
	opAwait   // wait for word sig
	opInspect // own memory must be want
)

// op is one step. Elements are of T; want is what a get must bring.
type op[T any] struct {
	kind         kind
	target, disp int
	src, want    []T
	how          pgsync.Op
	sig          int
	set          int // of counted or swapped answers
}

// phase is what all ranks do between two fences.
type phase[T any] struct {
	ops   [][]op[T] // by rank
	after [][]T     // every member's memory at its end
	sets  []set[T]
}

// set collects answers of fetching atomics on one element.
type set[T any] struct {
	target, disp int
	given        []T // swapped: what was there and what was put in; counted: every value before an add of one
	free         bool
}

// kit is what can be done with T.
type kit[T any] struct {
	random  func(*rand.Rand) T
	ops     []pgsync.Op // of Accumulate; empty: no arithmetic
	combine func(op pgsync.Op, a, b T) T
	plus    func(v T, n int) T
	word    bool // has fetching atomics
	align   int  // elements of the 8-byte word in which a NIC combines a narrow one; its neighbours are no business of others
}

// maker makes a plan.
type maker[T any] struct {
	kit[T]
	rng   *rand.Rand
	ranks int
	mem   [][]T
	ph    *phase[T]
	no    int
}

// plan returns the phases of a trace and the memory before the first.
func plan[T any](k kit[T], rng *rand.Rand, ranks, elems, phases int) []phase[T] {
	m := &maker[T]{kit: k, rng: rng, ranks: ranks, mem: make([][]T, ranks)}
	for r := range m.mem {
		m.mem[r] = make([]T, elems)
	}
	out := make([]phase[T], phases)
	for i := range out {
		out[i].ops = make([][]op[T], ranks)
		m.ph, m.no = &out[i], i+1
		late := make([][]op[T], ranks)   // what waits for another rank's first steps
		latest := make([][]op[T], ranks) // and what waits for those
		for target := range ranks {
			for at := 0; at < elems; {
				n := min(elems-at, (1+rng.IntN(max(1, elems/3))+k.align-1)/k.align*k.align)
				m.stretch(target, at, n, late, latest)
				at += n
			}
		}
		for r := range ranks {
			m.ph.ops[r] = append(append(append(m.ph.ops[r], op[T]{kind: opWaitAll}), late[r]...), latest[r]...)
		}
		for _, part := range m.mem {
			m.ph.after = append(m.ph.after, append([]T(nil), part...))
		}
	}
	return out
}

func (m *maker[T]) add(rank int, o op[T]) { m.ph.ops[rank] = append(m.ph.ops[rank], o) }

func (m *maker[T]) values(n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = m.random(m.rng)
	}
	return out
}

// stretch decides what a phase does with n elements of target from at on.
func (m *maker[T]) stretch(target, at, n int, late, latest [][]op[T]) {
	u := use(m.rng.IntN(int(numUses)))
	if u >= combined && u < locked && len(m.ops) == 0 || (u == counted || u == swapped) && !m.word || u == locked && m.plus == nil {
		u = exclusive
	}
	part := m.mem[target][at : at+n]
	switch u {
	case readOnly:
		for range m.rng.IntN(4) {
			lo := m.rng.IntN(n)
			hi := lo + m.rng.IntN(n-lo+1)
			m.add(m.rng.IntN(m.ranks), op[T]{kind: opGet + kind(m.rng.IntN(2)), target: target, disp: at + lo, want: clone(part[lo:hi])})
		}
	case exclusive:
		m.write(target, at, part, late, latest)
	case combined:
		how := m.ops[m.rng.IntN(len(m.ops))]
		for range m.rng.IntN(3 * m.ranks) {
			lo := m.rng.IntN(n)
			src := m.values(1 + m.rng.IntN(min(n-lo, 5)))
			m.add(m.rng.IntN(m.ranks), op[T]{kind: opAccumulate, target: target, disp: at + lo, src: src, how: how})
			for i, v := range src {
				part[lo+i] = m.combine(how, part[lo+i], v)
			}
		}
	case counted:
		s := set[T]{target: target, disp: at}
		for i := range m.rng.IntN(4 * m.ranks) {
			s.given = append(s.given, m.plus(part[0], i))
			m.add(m.rng.IntN(m.ranks), op[T]{kind: opCount + kind(m.rng.IntN(2)), target: target, disp: at, set: len(m.ph.sets)})
		}
		part[0] = m.plus(part[0], len(s.given))
		m.ph.sets = append(m.ph.sets, s)
	case swapped:
		s := set[T]{target: target, disp: at, given: []T{part[0]}, free: true}
		for range m.rng.IntN(3 * m.ranks) {
			src := m.values(1)
			s.given = append(s.given, src[0])
			m.add(m.rng.IntN(m.ranks), op[T]{kind: opSwap, target: target, disp: at, src: src, set: len(m.ph.sets)})
		}
		m.ph.sets = append(m.ph.sets, s)
	case locked:
		times := m.rng.IntN(2 * m.ranks)
		for range times {
			m.add(m.rng.IntN(m.ranks), op[T]{kind: opLocked, target: target, disp: at})
		}
		part[0] = m.plus(part[0], times)
	}
}

// write lets one rank write a stretch: puts that overlap with an Order between, gets after a Flush, and at the end perhaps
// a signal to the owner, straight or by way of a third rank, after which the owner looks before the fence.
func (m *maker[T]) write(target, at int, part []T, late, latest [][]op[T]) {
	rank := m.rng.IntN(m.ranks)
	n := len(part)
	dirty := make([]bool, n) // put since the last Order or Flush
	for range m.rng.IntN(8) {
		lo := m.rng.IntN(n)
		hi := lo + m.rng.IntN(n-lo+1)
		if m.rng.IntN(3) == 0 {
			m.add(rank, op[T]{kind: opFlush + kind(m.rng.IntN(2)), target: target})
			clear(dirty)
			m.add(rank, op[T]{kind: opGet + kind(m.rng.IntN(2)), target: target, disp: at + lo, want: clone(part[lo:hi])})
			m.add(rank, op[T]{kind: opWaitAll}) // before the elements are put again
			continue
		}
		for i := lo; i < hi; i++ {
			if dirty[i] {
				m.add(rank, op[T]{kind: opOrder, target: target})
				clear(dirty)
				break
			}
		}
		src := m.values(hi - lo)
		copy(part[lo:hi], src)
		for i := lo; i < hi; i++ {
			dirty[i] = true
		}
		m.add(rank, op[T]{kind: opPut + kind(m.rng.IntN(2)), target: target, disp: at + lo, src: src})
	}
	third := m.rng.IntN(m.ranks)
	// One signal from each rank to each other in a phase, and one set of words for each way.
	straight, first, second := rank, m.ranks+rank, 2*m.ranks+third
	used := func(list []op[T], sig int) bool {
		for _, o := range list {
			if o.kind == opAwait && o.sig == sig {
				return true
			}
		}
		return false
	}
	see := op[T]{kind: opInspect, target: target, disp: at, want: clone(part)}
	switch m.rng.IntN(4) {
	case 0: // the last put carries the signal
		if used(late[target], straight) {
			return
		}
		src := m.values(1 + m.rng.IntN(n))
		m.add(rank, op[T]{kind: opOrder, target: target})
		copy(part, src)
		see.want = clone(part)
		m.add(rank, op[T]{kind: opSignal, target: target, disp: at, src: src, sig: straight})
		late[target] = append(late[target], op[T]{kind: opAwait, sig: straight}, see)
	case 1: // flushed, told to a third rank, which tells the owner
		if used(late[third], first) || used(latest[target], second) {
			return
		}
		m.add(rank, op[T]{kind: opFlush, target: target})
		m.add(rank, op[T]{kind: opNotify, target: third, sig: first})
		late[third] = append(late[third], op[T]{kind: opAwait, sig: first}, op[T]{kind: opNotify, target: target, sig: second})
		latest[target] = append(latest[target], op[T]{kind: opAwait, sig: second}, see)
	}
}

func clone[T any](s []T) []T { return append([]T(nil), s...) }
