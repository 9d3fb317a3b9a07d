//go:build !linux

package main

// probeTime is nothing where the kernel is not asked.
func probeTime([][]byte, bool) float64 { return 0 }
