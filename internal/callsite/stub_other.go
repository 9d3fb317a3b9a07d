//go:build !amd64 && !arm64

package callsite

// Capture has no counter to read here: clocks are plain, and stacks come from runtime.Callers.
func Capture(s *Stack, skip int) Ticks {
	callers(s, skip+1)
	return 0
}

// Current cannot tell.
func Current() Caller { return 0 }

func ticks() uint64 { return 0 }

func steady() (bool, uint64) { return false, 0 }
