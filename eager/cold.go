package eager

import (
	"time"

	"gopgas/internal/mem"
)

// What reading a line costs that is in no cache near the core. It is measured as latencies of memory usually are, by a walk in which each
// read says where the next one goes (L. McVoy, C. Staelin: "lmbench: portable tools for performance analysis", USENIX 1996), at random
// places of more memory than a core's own caches hold.
const (
	coldStep   = 2 << 20              // bytes; the memory is made in steps
	coldMost   = 32 << 20             // so much is walked through at most: also the last cache of most machines is smaller
	coldTime   = 3 * time.Millisecond // for making it; the walk itself takes about one more
	coldReads  = 256                  // of a round: few, so that most rounds are not interrupted
	coldRounds = 32
	lineWords  = 64 / 8
)

// linesAsked is how many such lines the question for a buffer reads, where the program has done other work since: that of its word in
// the usage table, and one more on the way there, a link's or the page table's.
const linesAsked = 2

// assumedLine is what a line takes where there is no memory to measure it with, nanoseconds: what main memory takes on most machines.
const assumedLine = 100

// lineNanos measures what one line takes, in memory that memory makes. Of the rounds the least counts: what disturbs makes longer,
// never shorter.
func lineNanos(now func() time.Duration, memory func(now func() time.Duration) (mem.Range, func(), error)) float64 {
	r, free, err := memory(now)
	if err != nil {
		return assumedLine
	}
	defer free()
	words, at, best := mem.Slice[uint64](r), uint64(0), time.Duration(1<<63-1)
	for range coldRounds {
		began := now()
		at = walk(words, at, coldReads)
		best = min(best, now()-began)
	}
	return float64(best) / coldReads
}

// walk reads n of words, which are zero, each in another line. The multiplier and the addend are Knuth's for MMIX.
func walk(words []uint64, at uint64, n int) uint64 {
	lines := uint64(len(words) / lineWords)
	for range n {
		at = at*6364136223846793005 + 1442695040888963407
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
