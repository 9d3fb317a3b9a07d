package seats

import (
	"sync"
	"sync/atomic"
)

// Place is where one rank of a node posts: words that all ranks of the node have mapped, zero at first. Turn, of the first rank's, is whose
// turn it is.
type Place struct{ Bytes, Gap, Turn *atomic.Uint64 }

// Board is where the ranks of a node tell each other what they have registered. Any number of ranks may post and read at
// once; a reader may see one rank's post before another's, so two helpers can disagree for as long as it takes them to look
// again.
type Board struct {
	rank, ranks int // of this node

	mu     sync.Mutex // held while the places are touched, so that they are not after Close
	places []Place    // by rank; nil: they are not mapped, or not yet, or not any more
}

// PostEvery is the number of uses between two posts of a rank.
const PostEvery = 64

// NewBoard returns the board of a node of so many ranks for the one of that index among them. Until it is opened nobody
// posts anything, for all helpers alike.
func NewBoard(ranks, rank int) *Board { return &Board{rank: rank, ranks: ranks} }

// Open says where the ranks post, by rank of the node. It takes all of them: helpers that see different posts would come to
// different seats.
func (b *Board) Open(places []Place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(places) == b.ranks {
		b.places = places
	}
}

// Close returns when nobody of this rank touches the places any more; they may be unmapped then.
func (b *Board) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.places = nil
}

// Take takes the turn to do what one rank of the node does at a time, until Leave; it reports false while another rank has it that is
// not gone. Where the places are not open nobody can ask the others, and each has its turn.
func (b *Board) Take(gone func(rank int) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.places == nil {
		return true
	}
	word, own := b.places[0].Turn, uint64(b.rank)+1
	for {
		holder := word.Load()
		if holder != 0 && holder != own && !gone(int(holder)-1) {
			return false
		}
		if word.CompareAndSwap(holder, own) {
			return true
		}
	}
}

// Leave ends what Take began.
func (b *Board) Leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.places != nil {
		b.places[0].Turn.CompareAndSwap(uint64(b.rank)+1, 0)
	}
}

// Post publishes this rank's figures.
func (b *Board) Post(p Post) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.places != nil {
		b.places[b.rank].Bytes.Store(p.Bytes)
		b.places[b.rank].Gap.Store(uint64(p.Gap))
	}
}

// Posts returns what all ranks have posted, by rank.
func (b *Board) Posts() []Post {
	out := make([]Post, b.ranks)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range b.places {
		out[i] = Post{Bytes: p.Bytes.Load(), Gap: Nanos(p.Gap.Load())}
	}
	return out
}

// Seat returns this rank's seat by what has been posted.
func (b *Board) Seat(policy Policy, n Node) Seat { return Assign(policy, n, b.Posts())[b.rank] }
