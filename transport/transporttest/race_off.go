//go:build !race

package transporttest

// What Options are by default.
const (
	raceEnabled   = false
	defaultRounds = 10_000
	defaultOps    = 4000
)
