//go:build !linux

package sched

// threadID names no thread: there are no slices to give.
func threadID() int32 { return 0 }

func setSlice(int32, uint64) uint64 { return 0 }
