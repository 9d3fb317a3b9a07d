//go:build race

package proto

// raceEnabled: the race detector watches, and would take a measurement's reads of a rank's memory for the program's.
const raceEnabled = true
