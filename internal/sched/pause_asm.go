//go:build amd64 || arm64

package sched

// pause tells the processor that this is a loop that waits for another core's store.
func pause()
