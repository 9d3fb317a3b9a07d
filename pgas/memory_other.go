//go:build !linux

package pgas

// machineMemory is 0: nobody knows.
func machineMemory() int64 { return 0 }
