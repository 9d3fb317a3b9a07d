//go:build race

package sched

import "runtime"

const raceEnabled = true

// ignoreOrder has the race detector take no notice of what orders this goroutine and others, until heedOrder.
func ignoreOrder() { runtime.RaceDisable() }

func heedOrder() { runtime.RaceEnable() }
