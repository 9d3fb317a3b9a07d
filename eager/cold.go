package eager

import (
	"time"

	"gopgas/internal/mem"
)

// What reading a line costs that is in no cache near the core, and what copying there does. The former is measured as latencies of memory usually are, by a walk in which each
// read says where the next one goes (L. McVoy, C. Staelin: "lmbench: portable tools for performance analysis", USENIX 1996), at random
// places of more memory than a core's own caches hold.
const (
	coldStep   = 2 << 20              // bytes; the memory is made in steps
	coldMost   = 32 << 20             // so much is walked through at most: also the last cache of most machines is smaller
	coldTime   = 3 * time.Millisecond // for making it; the walk itself takes about one more
	coldReads  = 256                  // of a round: few, so that most rounds are not interrupted
	coldRounds = 32
	lineWords  = 64 / 8
	copyEach   = 32        // of a round, at most: some places are in a cache by chance
	copyBytes  = 128 << 10 // of a round, unless that is less than copyLeast copies
	copyLeast  = 4
	copyRounds = 6
)

// MeasureBytes is the memory that Measure takes at most, for some milliseconds, beside what it is given.
const MeasureBytes = coldMost

// linesAsked is how many such lines the question for a buffer reads, where the program has done other work since: that of its word in
// the usage table, and one more on the way there, a link's or the page table's.
const linesAsked = 2

// assumedLine is what a line takes where there is no memory to measure it with, nanoseconds: what main memory takes on most machines.
const assumedLine = 100

// cold is memory of which the least part is in a core's caches.
type cold struct {
	memory mem.Range
	free   func()
	line   float64 // what reading a line there takes, nanoseconds
	at     uint64
}

// newCold measures what one line takes, in memory that memory makes. Of the rounds the least counts: what disturbs makes longer,
// never shorter.
func newCold(now func() time.Duration, memory func(now func() time.Duration) (mem.Range, func(), error)) *cold {
	r, free, err := memory(now)
	if err != nil {
		return &cold{free: func() {}, line: assumedLine}
	}
	c := &cold{memory: r, free: free}
	words, best := mem.Slice[uint64](r), time.Duration(1<<63-1)
	for range coldRounds {
		began := now()
		c.at = walk(words, c.at, coldReads)
		best = min(best, now()-began)
	}
	c.line = float64(best) / coldReads
	return c
}

// copies returns how many nanoseconds longer it takes to copy src to places that are in no cache than to one that is: the least of some
// rounds less the least of as many. Without such memory it is 0, so that nothing is gained by it.
func (c *cold) copies(now func() time.Duration, src mem.Range) float64 {
	if c.memory.Bytes < src.Bytes || src.Bytes == 0 {
		return 0
	}
	hot, far := time.Duration(1<<63-1), time.Duration(1<<63-1)
	places := uint64(c.memory.Bytes-src.Bytes)/64 + 1
	each := max(copyLeast, min(copyEach, copyBytes/src.Bytes))
	for range copyRounds {
		for _, least := range [...]*time.Duration{&far, &hot} {
			began := now()
			for range each {
				if least == &far {
					c.at = next(c.at)
				}
				mem.Copy(c.memory.Slice(int(c.at>>32*places>>32)*64, src.Bytes).Data(), src.Data())
			}
			*least = min(*least, now()-began)
		}
	}
	return float64(max(0, far-hot)) / float64(each)
}

// next is a generator's next value. The multiplier and the addend are Knuth's for MMIX.
func next(at uint64) uint64 { return at*6364136223846793005 + 1442695040888963407 }

// walk reads n of words, which are zero, each in another line.
func walk(words []uint64, at uint64, n int) uint64 {
	lines := uint64(len(words) / lineWords)
	for range n {
		at = next(at)
		at += words[at>>32*lines>>32*lineWords] // without that word the next place is not known
	}
	return at
}

// grow makes memory step by step, by calls of more, until the time or the most is reached, and returns how much there is.
func grow(now func() time.Duration, more func(from, bytes int)) (bytes int) {
	for began := now(); bytes < coldMost && (bytes == 0 || now()-began < coldTime); bytes += coldStep {
		more(bytes, coldStep)
	}
	return bytes
}
