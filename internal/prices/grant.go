package prices

import (
	"sync/atomic"

	"gopgas/internal/selector"
)

// AskedFrom is the size in bytes from which one in AskedOf is asked about.
const AskedFrom = 16 << 10

// AskedOf is of how many puts of a run one is asked about, and of how many of one call site from buffers that are not used often. It is a prime: programs make other numbers of them before a flush, so
// that each of their buffers is asked about at times, whose uses would be forgotten else.
const AskedOf = 7

// grant is transfers that may go unasked, as one before them did that was asked about: of how many bytes each is, what else they have in common or are counted
// by, by what protocol they go, and how many are left. The zero grant is none.
type grant uint64

const (
	leftBits, wayBits, noteBits = 8, 8, 16
	mostLeft, mostWay, mostNote = 1<<leftBits - 1, 1<<wayBits - 1, 1<<noteBits - 1
	mostBytes                   = 1<<(64-noteBits-wayBits-leftBits) - 1
)

// grantOf is none where a word has no room for it: then all are asked about.
func grantOf(bytes, note int, p selector.Protocol, left int) grant {
	if bytes > mostBytes || note > mostNote {
		return 0
	}
	return grant(bytes)<<(noteBits+wayBits+leftBits) | grant(note)<<(wayBits+leftBits) | grant(p)<<leftBits | grant(left)
}

func (g grant) left() int              { return int(g & mostLeft) }
func (g grant) way() selector.Protocol { return selector.Protocol(g >> leftBits & mostWay) }
func (g grant) note() int              { return int(g >> (wayBits + leftBits) & mostNote) }
func (g grant) bytes() int             { return int(g >> (noteBits + wayBits + leftBits)) }

// goes is how a transfer of so many bytes goes; selector.None: as it is asked about.
func (g grant) goes(bytes int) selector.Protocol {
	if g.left() == 0 || g.bytes() != bytes {
		return selector.None
	}
	return g.way()
}

// granted is a grant that any goroutine may take from, without a lock.
type granted struct{ word atomic.Uint64 }

func (g *granted) now() grant  { return grant(g.word.Load()) }
func (g *granted) set(x grant) { g.word.Store(uint64(x)) }

// end takes all that is left.
func (g *granted) end() grant { return grant(g.word.Swap(0)) }

// take takes one of what was there, and reports whether there is one: others may have been quicker.
func (g *granted) take(was grant) bool {
	return was.left() > 0 && g.word.CompareAndSwap(uint64(was), uint64(was)-1)
}
