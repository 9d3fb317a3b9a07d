package regmgr

import (
	"runtime"
	"sync/atomic"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// state is where a region is in its life; the upper half of its word.
type state uint32

const (
	registering state = iota
	ready
	leaving // it is being deregistered, or is about to be
	dead    // it is not registered and will not be again
)

// Region is registered memory, referenced from Acquire to Release. It is the manager's; others can only look at it.
type Region struct {
	word   atomic.Uint64 // state, references
	lo, hi uint64        // the bytes covered, [lo, hi)
	access transport.Access
	origin mem.Origin
	key    transport.Region // valid while ready

	once bool          // deregister when the last reference goes
	tick atomic.Uint64 // the manager's count of uses at the last Release
	gcs  atomic.Uint32 // collections so far, at the last Release

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

// serves reports whether [lo, hi) lies in the region with the rights asked for.
func (r *Region) serves(lo, hi uint64, a transport.Access) bool {
	return lo >= r.lo && hi <= r.hi && r.access&a == a
}

func word(s state, refs uint32) uint64 { return uint64(s)<<32 | uint64(refs) }

func (r *Region) state() state { return state(r.word.Load() >> 32) }

// references is how many there are.
func (r *Region) references() uint32 { return uint32(r.word.Load()) }

// ref takes a reference if the region is ready. R1: the one compare-and-swap.
func (r *Region) ref() bool {
	for {
		w := r.word.Load()
		if state(w>>32) != ready {
			return false
		}
		if r.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

// unref drops a reference and reports whether it was the last.
func (r *Region) unref() bool { return uint32(r.word.Add(^uint64(0))) == 0 }

// retire begins the end of an idle region. Whoever gets true must deregister it.
func (r *Region) retire() bool { return r.word.CompareAndSwap(word(ready, 0), word(leaving, 0)) }
