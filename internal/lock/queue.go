package lock

import "slices"

// A member's word: 0, or its place in the queue, and below that the wait's number, whether it holds, and how.
const (
	rwRead  = 1
	rwWrite = 2
	rwHow   = 3
	rwHolds = 4
	rwShift = 16 // the place; bits 3 to 15 have the number of the wait
	rwTurn  = 1<<13 - 1
)

// rwWord packs a member's word.
func rwWord(place, turn, how uint64) uint64 { return place<<rwShift | turn<<3 | how }

// rwNextHolders returns who may hold the lock now beside those that do: the waiters in the order of their places, as far
// as they fit together. Waiters that are gone are passed over; a holder that is gone keeps what it holds.
func rwNextHolders(words []uint64, gone func(member int) bool) []int {
	readers, writer := 0, false
	for _, w := range words {
		if w&rwHolds != 0 {
			writer = writer || w&rwHow == rwWrite
			readers++
		}
	}
	var next []int
	for last := uint64(0); ; {
		first := -1
		for m, w := range words {
			if w == 0 || w&rwHolds != 0 || w>>rwShift <= last || gone(m) {
				continue
			}
			if first < 0 || w>>rwShift < words[first]>>rwShift {
				first = m
			}
		}
		if first < 0 || writer || words[first]&rwHow == rwWrite && readers > 0 {
			return next
		}
		next = append(next, first)
		last = words[first] >> rwShift
		readers++
		writer = words[first]&rwHow == rwWrite
	}
}

// rwMayEnter reports whether member me, who stands in no queue, may hold the lock at once: behind all that wait already.
func rwMayEnter(words []uint64, me int, how uint64, gone func(member int) bool) bool {
	with := slices.Clone(words)
	with[me] = rwWord(rwLast, 1, how)
	return slices.Contains(rwNextHolders(with, gone), me)
}

// rwLast is a place behind all others.
const rwLast = 1<<(64-rwShift) - 1
