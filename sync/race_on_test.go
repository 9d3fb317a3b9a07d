//go:build race

package pgsync_test

const raceEnabled = true
