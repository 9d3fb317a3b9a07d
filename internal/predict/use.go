package predict

import (
	"math"
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
	At     Nanos          // when the call was made: the demand stamp, or what Config.Clock makes one of
	Region Region         // what was used
	Buf    uint64         // the caller's buffer address, not the region's base
	Pages  uint32         // of the region
	Paid   uint32         // nanoseconds for which the call was kept by a registration on demand
	Stack  callsite.Stack // how the call came about
	Before uint64         // the window: hashes of the calls before, as Stream makes them
}

// Pay notes that the call was kept for d by a registration on demand: four seconds at most.
func (u *Use) Pay(d Nanos) { u.Paid = uint32(min(max(0, d), math.MaxUint32)) }

// Stream is the windows of the goroutines of a rank, one for each as far as they can be told apart: what others do meanwhile
// is no part of a window. Of each call in a window it hands over a hash, 32 bits where the window is the two calls of the
// paper, all in one word. Any goroutine may add to it, without waiting and without an instruction that locks: of two that share a
// window, as all those that nobody can tell apart do, the call of one may be left out where both add at this moment. Make one with
// NewStream.
type Stream struct {
	bits    uint   // of a call
	mask    uint64 // of the window
	windows [contexts]struct {
		calls atomic.Uint64 // hashes, the latest lowest
		_     [56]byte
	}
}

// contexts is how many windows a Stream has, a power of two: goroutines beyond share them.
const (
	contextBits = 5
	contexts    = 1 << contextBits
)

// NewStream returns an empty stream for a predictor with that Config.Window.
func NewStream(window int) *Stream {
	if window = (Config{Window: window}).withDefaults().Window; window == 0 {
		return &Stream{}
	}
	window = min(window, MaxWindow)
	bits := min(32, uint(64/window))
	return &Stream{bits: bits, mask: 1<<(bits*uint(window)) - 1}
}

// Note fills in u's window, that of the goroutine by, and then takes the call itself into it.
func (s *Stream) Note(u *Use, call Call, by callsite.Caller) {
	w := &s.windows[uint64(by)*factor>>(64-contextBits)].calls
	before := w.Load()
	u.Before = before
	mem.Publish(w, (before<<(s.bits&63)|uint64(call)*factor>>((64-s.bits)&63))&s.mask)
}

// Signature returns the hash of stack and buffer address of u and, for a window above 0, of the calls before it (section 3.1: not
// its size, not its peer, not the stacks of earlier calls).
func Signature(u *Use, window int) uint64 {
	h := mix(seed, u.Buf)
	for _, pc := range u.Stack {
		h = mix(h, uint64(pc))
	}
	if window > 0 {
		h = mix(h, u.Before)
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
