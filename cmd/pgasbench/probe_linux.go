package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// probeTime is the median of how many seconds the kernel takes to bring a buffer's pages in for writing, which it is asked for before a get into
// memory that is not Go's. If that is registered for each transfer the kernel is asked behind a registration that was given back, when it takes longer.
func probeTime(bufs [][]byte, registered bool) float64 {
	var times []float64
	for _, b := range bufs {
		if registered && unix.Mlock(b) == nil {
			_ = unix.Munlock(b)
		}
	}
	for _, b := range bufs {
		began := time.Now()
		_ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) // what an older kernel does instead is not worth telling
		times = append(times, time.Since(began).Seconds())
	}
	return summarize(times).median
}
