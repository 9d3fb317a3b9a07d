package seats

import "sync/atomic"

// BoardWords is the number of words that a rank's part of a Board takes: a cache line, so that posts of two ranks do
// not meet.
const BoardWords = 8

// Board is where the ranks of a node tell each other what they have registered: words of memory that all of them have
// mapped, zero at first. Any number of ranks may post and read at once; a reader may see one rank's post before
// another's, so two helpers can disagree for as long as it takes them to look again.
type Board struct {
	words []atomic.Uint64
	rank  int // of this node
}

// PostEvery is the number of uses between two posts of a rank.
const PostEvery = 64

// NewBoard returns the board over words, BoardWords for each rank of the node, for the rank of that index in it.
func NewBoard(words []atomic.Uint64, rank int) *Board { return &Board{words: words, rank: rank} }

// Post publishes this rank's figures.
func (b *Board) Post(p Post) {
	w := b.words[b.rank*BoardWords:]
	w[0].Store(p.Bytes)
	w[1].Store(uint64(p.Gap))
}

// Posts appends what all ranks have posted to out, by rank.
func (b *Board) Posts(out []Post) []Post {
	for w := b.words; len(w) >= BoardWords; w = w[BoardWords:] {
		out = append(out, Post{Bytes: w[0].Load(), Gap: Nanos(w[1].Load())})
	}
	return out
}

// Seat returns this rank's seat by what has been posted.
func (b *Board) Seat(policy Policy, n Node) Seat { return Assign(policy, n, b.Posts(nil))[b.rank] }
