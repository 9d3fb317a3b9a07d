package prices

import (
	"fmt"

	"gopgas/internal/mem"

	"golang.org/x/sys/unix"
)

// unused returns memory that no process has used, and what gives it back. The Go heap's may be some that was used before.
func unused(bytes int) (r mem.Range, free func(), err error) {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return r, nil, fmt.Errorf("map %d bytes to measure what their first use costs: %w", bytes, err)
	}
	return mem.Of(b), func() { _ = unix.Munmap(b) }, nil
}
