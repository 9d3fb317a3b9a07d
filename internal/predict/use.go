package predict

import (
	"math/bits"
	"sync/atomic"

	"gopgas/internal/callsite"
	"gopgas/internal/mem"
)

// Nanos is a time, or a duration, in nanoseconds of the rank's clock.
type Nanos = callsite.Nanos

// Never is later than every deadline.
const Never Nanos = 1<<63 - 1

// MaxWindow is the largest number of previous calls that a signature may take in.
const MaxWindow = 4

// Region is the cache's number of what it registers.
type Region uint64

// Call is the kind and the buffer address of a call, in one word. Zero: no call.
type Call uint64

// callBits is the number of a Call's low bits that hold an address: user addresses have no more on any of our machines.
const callBits = 57

// MakeCall packs a kind (below 127) and an address.
func MakeCall(kind uint8, addr uint64) Call {
	return Call(uint64(kind+1)<<callBits | addr&(1<<callBits-1))
}

// Use is one use of a region by a transfer.
type Use struct {
	At     Nanos          // when the call was made: the demand stamp
	Region Region         // what was used
	Buf    uint64         // the caller's buffer address, not the region's base
	Pages  uint32         // of the region
	Stack  callsite.Stack // how the call came about
	Prev   [MaxWindow]Call
}

// Context is the window of a stream of calls: the calls before the current one. The zero Context is empty. It belongs
// to whoever makes the calls, one at a time.
type Context struct{ prev [MaxWindow]Call }

// Note fills in u's window and then takes the call itself into it.
func (c *Context) Note(u *Use, call Call) {
	u.Prev = c.prev
	copy(c.prev[1:], c.prev[:])
	c.prev[0] = call
}

// Stream is a Context that any goroutine may add to, and a count of what was added: one atomic addition a call. Of each call
// in the window it hands over a hash, 32 bits where the window is the two calls of the paper, all in one word. A call that
// another goroutine is adding at this moment may count as none. Make one with NewStream.
type Stream struct {
	calls atomic.Uint64
	bits  uint // of a call
	reach uint64
	_     [40]byte
	ring  [8]atomic.Uint64 // by a call's number: its hash, and the low half of the number
}

// halfWord is the size of either half of a ring's word, in bits.
const halfWord = 32

// NewStream returns an empty stream for a predictor with that Config.Window.
func NewStream(window int) *Stream {
	if window = (Config{Window: window}).withDefaults().Window; window == 0 {
		return &Stream{}
	}
	window = min(window, MaxWindow)
	return &Stream{bits: min(halfWord, uint(64/window)), reach: uint64(window)}
}

// Note fills in u's window and then takes the call itself into it.
func (s *Stream) Note(u *Use, call Call) {
	n := s.calls.Add(1)
	if s.reach == 0 {
		return
	}
	var before uint64
	for i := s.reach; i > 0; i-- {
		hash := uint64(0)
		if w := s.ring[(n-i)%uint64(len(s.ring))].Load(); uint32(w) == uint32(n-i) {
			hash = w >> halfWord
		}
		before = before<<s.bits | hash>>(halfWord-s.bits)
	}
	u.Prev = [MaxWindow]Call{Call(before)}
	mem.Publish(&s.ring[n%uint64(len(s.ring))], mix(seed, uint64(call))>>halfWord<<halfWord|uint64(uint32(n)))
}

// Calls returns how many have been noted.
func (s *Stream) Calls() uint64 { return s.calls.Load() }

// Signature returns the hash of stack and buffer address of u and of the window calls before it (section 3.1: not its
// size, not its peer, not the stacks of earlier calls).
func Signature(u *Use, window int) uint64 {
	h := mix(seed, u.Buf)
	for _, pc := range u.Stack {
		h = mix(h, uint64(pc))
	}
	for _, c := range u.Prev[:min(window, MaxWindow)] {
		h = mix(h, uint64(c))
	}
	return h
}

// Odd constants with about as many ones as zeroes.
const seed, factor = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93

// mix takes a word into a hash: the product's halves, folded.
func mix(h, word uint64) uint64 {
	hi, lo := bits.Mul64(h^word^seed, factor)
	return hi ^ lo + bits.RotateLeft64(h, 23)
}
