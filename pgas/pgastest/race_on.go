//go:build race

package pgastest

const raceEnabled = true
