//go:build !linux

package pgas

// watchNeighbours relies on the launcher's word where processes cannot be watched by descriptor.
func (w *World) watchNeighbours(bool) {}
