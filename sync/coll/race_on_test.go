//go:build race

package coll_test

const raceEnabled = true
