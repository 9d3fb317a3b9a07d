//go:build !linux

package sched

import (
	"runtime"
	"time"
)

func (s *Sched) claimThread() (release func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

func (s *Sched) bind(int) error { return nil }

func (s *Sched) nap(d time.Duration) { time.Sleep(d) }
