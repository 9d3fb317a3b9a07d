package callsite

import (
	"math/bits"
	"runtime"
	"time"
)

// Depth is the number of return addresses in a Stack: the frames of this library that lie between a program's call and
// the NIC, and some of the program's own.
const Depth = 8 // and so many lines of the stub for amd64

// Stack holds return addresses, innermost first; unused entries are zero.
type Stack [Depth]uintptr

// Caller is a goroutine: a number that no other one has at the time. One that begins later may have it again. 0: nobody can tell.
type Caller uintptr

// Nanos is a point of a Clock's time, or a difference of two, in nanoseconds.
type Nanos = int64

// Ticks is a reading of the processor's counter.
type Ticks uint64

// Clock stamps calls. Make one with New or Plain. It does not change after that.
type Clock struct {
	now    func() time.Duration
	mult   uint64 // nanoseconds per tick, times 2^shift; 0 in a plain clock
	ticks0 uint64
	nanos0 Nanos
}

const shift = 32

// Calibration of a counter whose rate nobody tells: the two readings at either end are as close to each other as the
// best of a few tries, so that over two milliseconds the rate is right to about one part in 20 000.
const (
	calibration = 2 * time.Millisecond
	tries       = 32
)

// New returns a clock that reads the processor's counter and continues the time of now. Where the rate of the counter
// must be measured it spins for two milliseconds; where the counter is not usable the clock is plain.
func New(now func() time.Duration) *Clock {
	c := Plain(now)
	ok, hertz := steady()
	if !ok {
		return c
	}
	t0, n0 := c.pair()
	rate := float64(hertz) / 1e9 // ticks per nanosecond
	if hertz == 0 {
		t1, n1 := t0, n0
		for n1-n0 < Nanos(calibration) {
			if t, n := c.pair(); n > n1 {
				t1, n1 = t, n
			}
		}
		rate = float64(t1-t0) / float64(n1-n0)
	}
	if !usable(rate) {
		return c
	}
	c.mult, c.ticks0, c.nanos0 = uint64((1<<shift)/rate+0.5), t0, n0
	return c
}

// Plain returns a clock that asks now each time: virtual time.
func Plain(now func() time.Duration) *Clock { return &Clock{now: now} }

// usable reports whether a rate in ticks per nanosecond is one of a counter that runs, and fits the fixed point.
func usable(rate float64) bool { return rate > 1e-3 && rate < 100 }

// pair reads counter and time source as close together as the best of a few tries.
func (c *Clock) pair() (uint64, Nanos) {
	var at uint64
	var now Nanos
	best := ^uint64(0)
	for range tries {
		before := ticks()
		n := Nanos(c.now())
		if d := ticks() - before; d < best {
			best, at, now = d, before+d/2, n
		}
	}
	return at, now
}

// Counter reports whether stamps come from the processor's counter. If so, Mark is At of Capture.
func (c *Clock) Counter() bool { return c.mult != 0 }

// Now returns the time.
func (c *Clock) Now() Nanos {
	if c.mult == 0 {
		return Nanos(c.now())
	}
	return c.At(Ticks(ticks()))
}

// Mark stores the stack above its caller in s, without the innermost skip frames, and returns the time. A caller that
// inlines Mark's caller takes that one's place.
//
//go:noinline
func (c *Clock) Mark(s *Stack, skip int) Nanos {
	if c.mult == 0 {
		callers(s, skip+2)
		return Nanos(c.now())
	}
	return c.At(Capture(s, skip+1))
}

// Here stores the stack above its caller in s as Mark does, without a time stamp: for who only tells call sites apart.
//
//go:noinline
func Here(s *Stack, skip int) { Capture(s, skip+1) }

// Hash mixes the return addresses of s.
func (s *Stack) Hash() (h uint64) {
	for _, pc := range s {
		h = (h ^ uint64(pc)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// At converts a reading, of a clock that has a counter. Readings from before the calibration come out earlier than it.
func (c *Clock) At(t Ticks) Nanos {
	d := int64(uint64(t) - c.ticks0)
	hi, lo := bits.Mul64(uint64(d), c.mult)
	hi -= c.mult & uint64(d>>63) // a product of signed numbers
	return c.nanos0 + Nanos(hi<<(64-shift)|lo>>shift)
}

// callers fills s by the runtime, skipping callers itself and skip frames above it.
func callers(s *Stack, skip int) {
	n := runtime.Callers(skip+2, s[:])
	clear(s[n:])
}
