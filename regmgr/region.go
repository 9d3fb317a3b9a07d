package regmgr

import (
	"runtime"
	"sync/atomic"

	"gopgas/internal/invariants"
	"gopgas/internal/mem"
	"gopgas/transport"
)

// state is where a region is in its life.
type state uint8

// A region's word, so that taking a reference and dropping it with the time of the use are one compare-and-swap each: two
// bits of state, sixteen of references, and the manager's count of uses when the last reference was dropped. The count
// wraps after weeks of nothing but uses; then one choice of what to give up may be worse than it could be.
const (
	tickBits  = 46
	refBits   = 16
	oneRef    = 1 << tickBits
	tickMask  = oneRef - 1
	refMask   = (1<<refBits - 1) << tickBits
	stateBase = tickBits + refBits
)

const (
	registering state = iota
	ready
	leaving // it is being deregistered, or is about to be
	dead    // it is not registered and will not be again
)

// Region is registered memory, referenced from Acquire to Release. It is the manager's; others can only look at it.
type Region struct {
	word   atomic.Uint64 // state, references, last use
	lo, hi uint64        // the bytes covered, [lo, hi)
	access transport.Access
	origin mem.Origin
	key    transport.Region // valid while ready

	once   bool    // deregister when the last reference goes
	alone  bool    // and all who share it use all of its pages: see serves
	bucket *bucket // whose registration this is; nil: it has its own

	mem      mem.Range
	pages    int
	pin      *runtime.Pinner
	lifetime *Lifetime
	spot     *spot        // under a policy that registers ahead
	expected atomic.Int64 // when its next use is predicted, in nanoseconds of the rank's clock; 0: nobody knows
	self     entry        // its place in an index slot that it has for itself
	rank     uint64       // in the idle list: tick when it was entered there
	place    int          // in the idle list, -1: not in it
}

// Contains reports whether all of m lies in the region.
func (r *Region) Contains(m mem.Range) bool {
	return m.Addr() >= r.lo && m.Addr()+uint64(m.Bytes) <= r.hi
}

// serves reports whether [lo, hi) lies in the region with the rights asked for. Memory of which nobody says how long it stays may be unmapped, and something else be mapped there, as
// soon as no transfer uses it, which need not be all of the region at once: so a use of a part of that says nothing of the other pages, and the region is for those only whose use of
// it says that all of it is what it was.
func (r *Region) serves(lo, hi uint64, a transport.Access) bool {
	return r.holds(lo, hi, a) && (!r.alone || lo>>pageBits == r.lo>>pageBits && (hi-1)>>pageBits == (r.hi-1)>>pageBits)
}

// holds is serves for a piece of a transfer that uses all of the region.
func (r *Region) holds(lo, hi uint64, a transport.Access) bool {
	return lo >= r.lo && hi <= r.hi && r.access&a == a
}

func word(s state, refs, tick uint64) uint64 {
	return uint64(s)<<stateBase | refs<<tickBits | tick&tickMask
}

func (r *Region) state() state { return state(r.word.Load() >> stateBase) }

// references is how many there are.
func (r *Region) references() int { return int(r.word.Load() & refMask >> tickBits) }

// used is the manager's count of uses when the region was last released.
func (r *Region) used() uint64 { return r.word.Load() & tickMask }

// ref takes a reference if the region is ready, and has fewer than the word can count. R1: the one compare-and-swap.
func (r *Region) ref() bool {
	for {
		w := r.word.Load()
		if state(w>>stateBase) != ready || w&refMask == refMask {
			return false
		}
		if r.word.CompareAndSwap(w, w+oneRef) {
			return true
		}
	}
}

// settled reports whether ref is worth a try, or will never be again.
func (r *Region) settled() bool {
	w := r.word.Load()
	s := state(w >> stateBase)
	return s == dead || s == ready && w&refMask != refMask
}

// unref drops a reference at the tick and reports whether it was the last.
func (r *Region) unref(tick uint64) bool {
	for {
		w := r.word.Load()
		invariants.Check(w&refMask != 0 && state(w>>stateBase) == ready, "a reference to registered memory is dropped twice") // R1
		if next := (w-oneRef)&^tickMask | tick&tickMask; r.word.CompareAndSwap(w, next) {
			return next&refMask == 0
		}
	}
}

// retire begins the end of an idle region. Whoever gets true must deregister it.
func (r *Region) retire() bool {
	for {
		w := r.word.Load()
		if state(w>>stateBase) != ready || w&refMask != 0 {
			return false
		}
		if r.word.CompareAndSwap(w, word(leaving, 0, w)) {
			return true
		}
	}
}
