//go:build !linux

package sched

import "time"

func (s *Sched) turns(time.Duration) Turns { return Turns{} }
