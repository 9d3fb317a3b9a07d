//go:build !linux

package pgas

import "runtime"

// watchNeighbours relies on the launcher's word where processes cannot be watched by descriptor.
func (w *World) watchNeighbours(bool) {}

// ownCores lists as many processors as the runtime counts.
func ownCores() []int {
	cores := make([]int, runtime.NumCPU())
	for c := range cores {
		cores[c] = c
	}
	return cores
}
