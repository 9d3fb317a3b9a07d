package foresight

import "gopgas/firehose"

// Target is a bucket of another rank's memory.
type Target struct {
	Rank   int
	Range  firehose.Range
	Bucket firehose.Bucket
}

// MostTargets is how many buckets a Table knows at a time.
const MostTargets = 1 << 16

// siteBits tell sites apart.
const siteBits = 8

// Table knows a rank's targets and judges its sites. Make one with New.
type Table struct {
	base    uint64 // the number of targets[0]
	targets []Target
	numbers map[Target]uint64
	last    []firehose.Bucket // by rank: the bucket used last, plus one
	sites   [1 << siteBits]site
	stats   Stats
}

// Stats count uses since the Table was made.
type Stats struct {
	Told   uint64
	Untold uint64 // whose site is not worth it, or not tried yet
}

// New returns the table of a rank that knows nothing, in a world of so many ranks.
func New(ranks int) *Table {
	return &Table{numbers: make(map[Target]uint64), last: make([]firehose.Bucket, ranks)}
}

// Again reports whether a rank's bucket is the one of it that was used last: then this is the same use. Else it is the last one now.
func (t *Table) Again(rank int, b firehose.Bucket) bool {
	if t.last[rank] == b+1 {
		return true
	}
	t.last[rank] = b + 1
	return false
}

// Tell reports whether the predictor is to be told of a use by a site, and counts it.
func (t *Table) Tell(hash uint64, o Outcome, c Costs) bool {
	told := t.sites[hash>>(64-siteBits)].use(o, len(t.targets), c)
	if told {
		t.stats.Told++
	} else {
		t.stats.Untold++
	}
	return told
}

// Number returns the number of a target, below 2^63: a new one if it has none.
func (t *Table) Number(to Target) uint64 {
	if n, ok := t.numbers[to]; ok {
		return n
	}
	if len(t.targets) == MostTargets {
		t.base += MostTargets
		t.targets = t.targets[:0]
		clear(t.numbers)
	}
	n := t.base + uint64(len(t.targets))
	t.targets = append(t.targets, to)
	t.numbers[to] = n
	return n
}

// Find is Number's inverse; ok is false if the target was forgotten.
func (t *Table) Find(number uint64) (to Target, ok bool) {
	if number < t.base || number-t.base >= uint64(len(t.targets)) {
		return Target{}, false
	}
	return t.targets[number-t.base], true
}

// Stats returns the counts so far.
func (t *Table) Stats() Stats { return t.stats }
