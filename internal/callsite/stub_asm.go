//go:build amd64 || arm64

package callsite

// Capture stores the return addresses above the function that calls it in s, without the innermost skip frames, and returns
// the reading of the processor's counter. It is what Clock.Mark is made of, for who cannot pay for a call more and for Clock.At there:
// see Clock.Counter.
//
//go:noescape
func Capture(s *Stack, skip int) Ticks

// Current returns the goroutine: the address of what the runtime keeps of it, which is never followed.
func Current() Caller

// ticks returns the counter.
func ticks() uint64

// steady reports whether the counter runs at one rate on all processors, and that rate in ticks per second where the
// processor says it, else 0.
func steady() (bool, uint64)
