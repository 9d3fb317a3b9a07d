//go:build !linux

package pgas

import "time"

// sharedClock returns nanoseconds by a clock that all processes of this machine share.
func sharedClock() int64 { return time.Now().UnixNano() }
