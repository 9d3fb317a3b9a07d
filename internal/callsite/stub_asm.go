//go:build amd64 || arm64

package callsite

// capture stores the return addresses above the function that calls it, skipping the innermost skip, and returns the
// counter.
//
//go:noescape
func capture(s *Stack, skip int) uint64

// ticks returns the counter.
func ticks() uint64

// steady reports whether the counter runs at one rate on all processors, and that rate in ticks per second where the
// processor says it, else 0.
func steady() (bool, uint64)
