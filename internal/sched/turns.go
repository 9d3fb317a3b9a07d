package sched

import "time"

// Turns is how the kernel has threads of one core take turns.
type Turns struct {
	Slice time.Duration // for how long one runs while others wait, as the kernel says, but for its tick; 0: it does not say
	Swap  time.Duration // what it takes to go on with another; 0: it was not measured
}

// Turns asks the kernel for its slice and measures a swap: two threads hand each other the core, again and again, and the best tries
// count. It takes limit, and a few handings over more. In virtual time, and where threads cannot be bound, the answer is zero.
func (s *Sched) Turns(limit time.Duration) Turns {
	if s.sim != nil {
		return Turns{}
	}
	return s.turns(limit)
}

// Limits of a measurement of swaps.
const (
	turnsBatch = 8   // handings over there and back that are timed together
	mostTurns  = 128 // batches
)

// bestOf returns the least time of f in batches, for each call, until the clock of s says that limit is over, or f fails: 0 then.
func (s *Sched) bestOf(limit time.Duration, f func() error) time.Duration {
	best := time.Duration(1<<63 - 1)
	for begin, i := s.Now(), 0; i < mostTurns && (i == 0 || s.Now()-begin < limit); i++ {
		t := s.Now()
		for range turnsBatch {
			if f() != nil {
				return 0
			}
		}
		best = min(best, (s.Now()-t)/turnsBatch)
	}
	return best
}

// swapOf is what a swap takes by what a byte takes there and back between two threads of a core, and alone between a thread and
// itself: the former is two of the latter, and two swaps.
func swapOf(both, alone time.Duration) time.Duration {
	if both <= 0 || alone <= 0 {
		return 0
	}
	return max(1, both/2-alone)
}
