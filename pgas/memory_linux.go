package pgas

import "golang.org/x/sys/unix"

// machineMemory is how much memory this machine has, bytes.
func machineMemory() int64 {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return 0 // it is part of every Linux
	}
	return int64(uint64(s.Totalram) * uint64(s.Unit))
}
