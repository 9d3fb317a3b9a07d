//go:build !linux

package pgas

import "runtime"

// watchNeighbours relies on the launcher's word where processes cannot be watched by descriptor.
func (w *World) watchNeighbours(bool) {}

// jobCores lists none: nobody is bound.
func jobCores() []int { return nil }

// ownCores lists as many processors as the runtime counts.
func ownCores() []int {
	cores := make([]int, runtime.NumCPU())
	for c := range cores {
		cores[c] = c
	}
	return cores
}

// processLives cannot tell.
func processLives(int) (lives, known bool) { return false, false }
