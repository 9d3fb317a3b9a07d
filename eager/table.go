package eager

import (
	"sync/atomic"

	"gopgas/internal/mem"
)

// Sizes of the usage table.
const (
	bucketBits  = 20 // Rashti and Afsahi, section 3.3.3: a million buckets
	countBits   = 16
	mostUses    = 1<<(countBits-1) - 1 // counts stay there
	frequentBit = 1 << (countBits - 1)
	addressBits = 64 - countBits
)

// seenWords of bits say that a buffer may be known: little enough to stay near the core. Each buffer has two bits of one word. Where growth
// has stopped early, which is what they are for, four bits of a word are set, so that of buffers at random addresses one in two hundred and fifty
// is taken for one that may be known, by reckoning: four bits of 64, twice. Of regular addresses it may be more.
const seenWords = 1 << 10

// never is a threshold that no count reaches.
const never = mostUses + 1

// growthPercent is the share of frequent buffers below which the table stops growing (section 3.4).
const growthPercent = 20

// Table counts how often buffers are used: buffer address to count, hashed by multiplication, with chains. The zero
// Table is not ready; NewTable makes one. It is not safe for concurrent use: its owner's lock guards it.
//
// A word is an address, a bit that says whether the buffer has been frequent, and a count. Each bucket has one, which holds the first buffer of
// the bucket if there is one, so that using that touches one line of memory. The others of a bucket lie in words of the same line whose buckets have
// no buffer, and move on when they get one. Only what no longer fits into a line is linked. So a use that does not find its buffer first reads
// nothing farther away than the line that it has; two reads more of main memory for one use in nine were most of what uses of a million buffers took.
type Table struct {
	words []uint64 // by bucket; 0: empty
	next  []uint32 // by line: index into links, plus one
	links []link

	seen                    [seenWords]atomic.Uint64 // bits for each buffer that is known, which others share
	stopped                 atomic.Bool              // it does not grow
	bits                    uint                     // of a bucket's number
	size, frequent, chained int
	refused                 uint64
}

// lineBits is that of the words of a line.
const lineBits = 3

// link is a buffer of a line that is full.
type link struct {
	word uint64
	next uint32
}

// TableBytes is what an empty table takes but for some KiB, bytes: all of it is populated when it is made.
const TableBytes = 8<<bucketBits + 4<<(bucketBits-lineBits)

// NewTable returns an empty table of about 9 MiB.
func NewTable() *Table { return newTable(bucketBits) }

func newTable(bits uint) *Table {
	t := &Table{words: whole(1 << bits), next: make([]uint32, 1<<(bits-lineBits)), bits: bits}
	ready(mem.Of(t.words))
	ready(mem.Of(t.next))
	return t
}

// whole returns n words, which begin where a large page does if they are as long as one.
func whole(n int) []uint64 {
	if n*8 < mem.LargePage {
		return make([]uint64, n)
	}
	all := make([]uint64, n+mem.LargePage/8)
	skip := -mem.Of(all).Addr() % mem.LargePage / 8
	return all[skip:][:n:n]
}

// bucket is the multiplicative hash by the golden ratio's fraction, which spreads consecutive numbers best. What is
// consecutive in the addresses of buffers are page numbers; the offset in the page, spread likewise, is mixed in.
func bucket(addr uint64, bits uint) uint64 {
	page := addr >> pageBits * 0x9e3779b97f4a7c15 >> ((64 - bits) & 63) // the masks spare what Go does for longer shifts
	offset := uint32(addr) << (32 - pageBits) >> (32 - pageBits) * 0x9e3779b1 >> ((32 - bits) & 31)
	return page ^ uint64(offset)
}

// pageBits is that of the smallest pages there are.
const pageBits = 12

// Use counts one use of the buffer at addr and reports whether it is frequent: whether its uses, this one included, are
// at least threshold, which may differ from use to use. A buffer that is not known is added, unless the table has
// stopped growing: then it is not frequent.
//
// Among a million buffers a use waits for a line that is far from the core. Uses that follow each other wait together, as many as the
// processor has begun by then: the fewer instructions a use has, the more they are. So Growing is not asked here.
func (t *Table) Use(addr uint64, threshold uint32) bool {
	if addr == 0 || addr>>addressBits != 0 {
		return false // no address of a program: it could not be told from another
	}
	b := bucket(addr, t.bits)
	if t.refuses(b) {
		t.refused++
		return false // without a look at the table, which may be far from the core
	}
	w := &t.words[b]
	if *w>>countBits == addr {
		return t.count(w, threshold)
	}
	return t.find(b, addr, threshold)
}

// ignores reports whether Use of the buffer at addr would do nothing, since the table has stopped growing and does not know it. False says
// nothing. Any goroutine may ask at any time: beside a Use the answer may be that of just before.
func (t *Table) ignores(addr uint64) bool {
	return t.stopped.Load() && addr>>addressBits == 0 && t.refuses(bucket(addr, t.bits))
}

func (t *Table) refuses(b uint64) bool {
	if !t.stopped.Load() {
		return false
	}
	word, bits := seenAt(b)
	return t.seen[word].Load()&bits != bits
}

// seenAt is where the bits of a bucket's buffers are.
func seenAt(b uint64) (word, bits uint64) {
	rest := b / seenWords
	first := rest % 64
	second := first + 1 + rest/64*4 // is another one: less than 64 further, in sixteen different ways
	return b % seenWords, 1<<first | 1<<(second%64)
}

// count adds a use to a word.
func (t *Table) count(w *uint64, threshold uint32) bool {
	word := *w
	n := word & mostUses
	if n < mostUses {
		word++
		n++
		*w = word
	}
	if n < uint64(threshold) { // as it always is below never
		return false
	}
	if word&frequentBit == 0 {
		*w = word | frequentBit
		t.frequent++
		t.stopped.Store(!t.Growing())
	}
	return true
}

// find is Use of a buffer that is not the first of its bucket.
func (t *Table) find(b uint64, addr uint64, threshold uint32) bool {
	line := t.line(b)
	room := false
	for i := range line {
		if line[i]>>countBits == addr {
			return t.count(&line[i], threshold)
		}
		room = room || line[i] == 0
	}
	if !room {
		for i := t.next[b>>lineBits]; i != 0; i = t.links[i-1].next {
			if w := &t.links[i-1].word; *w>>countBits == addr {
				return t.count(w, threshold)
			}
		}
	}
	if t.stopped.Load() {
		t.refused++
		return false
	}
	w := t.add(b, addr<<countBits)
	t.size++
	t.stopped.Store(!t.Growing())
	return t.count(w, threshold)
}

// add puts a buffer that is not known into its bucket, or beside it, and returns where it is.
func (t *Table) add(b, word uint64) *uint64 {
	at, bits := seenAt(b)
	t.seen[at].Or(bits)
	w := &t.words[b]
	there := *w
	switch {
	case there == 0:
	case bucket(there>>countBits, t.bits) == b:
		t.chained++
		return t.beside(b, word)
	default: // a guest, who goes
		t.beside(b, there)
	}
	*w = word
	return w
}

// beside puts a word into another place of a bucket's line, or behind it, and returns where it is.
func (t *Table) beside(b, word uint64) *uint64 {
	line := t.line(b)
	for i := range line {
		if line[i] == 0 {
			line[i] = word
			return &line[i]
		}
	}
	next := &t.next[b>>lineBits]
	t.links = append(t.links, link{word, *next})
	*next = uint32(len(t.links))
	return &t.links[len(t.links)-1].word
}

// line is that of a bucket.
func (t *Table) line(b uint64) *[1 << lineBits]uint64 {
	return (*[1 << lineBits]uint64)(t.words[b>>lineBits<<lineBits:])
}

// Growing reports whether a buffer that is not known would be added: growth stops while chains have begun and fewer
// than 20 % of the buffers are frequent. There is no hysteresis; known buffers go on counting.
func (t *Table) Growing() bool {
	return t.chained == 0 || t.frequent*100 >= growthPercent*t.size
}

// Usage is what a table holds, for statistics.
type Usage struct {
	Buffers  int    // known
	Frequent int    // of them, once frequent
	Chained  int    // of them, not the first of their bucket
	Refused  uint64 // uses of buffers that were not added
}

// Usage returns what the table holds.
func (t *Table) Usage() Usage {
	return Usage{Buffers: t.size, Frequent: t.frequent, Chained: t.chained, Refused: t.refused}
}
