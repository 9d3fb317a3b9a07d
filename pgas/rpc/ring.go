package rpc

import (
	mathbits "math/bits"
)

// A ring is a part of a member's memory that one other member writes messages into, in words of 8 bytes. Positions only grow; a word's place is its position
// modulo the ring's length. A message is one piece or several, and a piece is a header of two words with the bytes behind it. No piece goes around the
// ring's end: where one would, the words up to there are skipped.

// kind is what a piece is.
type kind uint8

const (
	skip    kind = iota // nothing until the ring's end; it has one word
	call                // a function is called, and answers
	send                // a function is called that does not answer
	flush               // an answer is wanted when everything sent before has been done
	answer              // a result
	failure             // the text of an error in a result's place
)

const (
	headerWords = 2
	// A rank's rings take ringsBytes together, as far as ringLeast and ringMost words for each allow.
	ringsBytes = 4 << 20
	ringLeast  = 512
	ringMost   = 32768
	// pieceShare is the part of a ring that a piece takes at most: while one is read the next is on its way.
	pieceShare = 4

	mostFuncs = 1 << 16
)

// ringWords is the length of each ring of a rank that members write to.
func ringWords(members int) int {
	words := ringsBytes / 8 / max(1, members)
	return min(max(ringLeast, 1<<(mathbits.Len(uint(words))-1)), ringMost)
}

// pieceBytes is what a piece carries at most.
func pieceBytes(ring int) int { return 8 * (ring/pieceShare - headerWords) }

// header begins a piece.
type header struct {
	kind  kind
	first bool // of its message: what came of one before it, if that has no last piece, is nothing
	last  bool
	fn    int
	bytes int    // of the message that this piece carries
	id    uint64 // of the call; of the whole message's bytes where this piece is not the last
}

func (h header) words() (first, second uint64) {
	first = uint64(h.kind)<<56 | uint64(h.fn)<<32 | uint64(uint32(h.bytes))
	if h.last {
		first |= 1 << 55
	}
	if h.first {
		first |= 1 << 54
	}
	return first, h.id
}

func headerOf(first, second uint64) header {
	return header{kind(first >> 56), first>>54&1 != 0, first>>55&1 != 0, int(first >> 32 & (mostFuncs - 1)), int(uint32(first)), second}
}

// size is the words of a piece.
func size(bytes int) int { return headerWords + (bytes+7)/8 }

// place says where in a ring a piece of words goes whose writer is at position tail, and how many words it skips before. ok is false as long as the reader,
// at position head, has not left room for both.
func place(ring int, tail, head uint64, words int) (at, skipped int, ok bool) {
	at = int(tail & uint64(ring-1))
	if ring-at < words {
		skipped, at = ring-at, 0
	}
	return at, skipped, int(tail-head)+skipped+words <= ring
}
