//go:build race

package transporttest

// What Options are by default. The race detector sees an unordered pair of accesses in the first round that has it, and makes
// each round ten times as long; that rare orders are met is up to builds without it.
const (
	raceEnabled   = true
	defaultRounds = 2000
	defaultOps    = 1500
)
