//go:build !race

package transporttest

// What Options are by default.
const (
	defaultRounds = 10_000
	defaultOps    = 4000
)
