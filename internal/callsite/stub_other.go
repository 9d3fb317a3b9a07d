//go:build !amd64 && !arm64

package callsite

// capture is not there: clocks are plain and stacks come from runtime.Callers.
func capture(s *Stack, skip int) uint64 {
	callers(s, skip+1)
	return 0
}

func ticks() uint64 { return 0 }

func steady() (bool, uint64) { return false, 0 }
