//go:build !linux

package sched

import (
	"runtime"
	"sync/atomic"
	"time"
)

// futexWait sleeps for a while: without futexes a parked wait polls.
func futexWait(word *atomic.Uint32, val uint32, limit time.Duration) {
	if word.Load() == val {
		time.Sleep(min(limit, time.Millisecond))
	}
}

func futexWake(*atomic.Uint32) {}

func yieldProcessor() { runtime.Gosched() }
