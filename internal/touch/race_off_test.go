//go:build !race

package touch

const raceEnabled = false
