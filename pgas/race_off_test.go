//go:build !race

package pgas_test

const raceEnabled = false
