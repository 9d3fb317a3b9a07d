package eager

import (
	"fmt"
	"time"

	"gopgas/internal/mem"

	"golang.org/x/sys/unix"
)

// coldMemory returns memory to walk through, which is no part of the Go heap and so hastens no collection, and what gives it back.
func coldMemory(now func() time.Duration) (r mem.Range, free func(), err error) {
	b, err := unix.Mmap(-1, 0, coldMost, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return r, nil, fmt.Errorf("map %d bytes to measure what reading memory costs: %w", coldMost, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // as the table's; where there are none a walk costs what the table's lines do there
	got := grow(now, func(from, bytes int) {
		part := b[from : from+bytes]
		if unix.Madvise(part, unix.MADV_POPULATE_WRITE) == nil {
			return
		}
		for i := 0; i < len(part); i += smallPage { // an older kernel
			part[i] = 0
		}
	})
	return mem.Of(b[:got]), func() { _ = unix.Munmap(b) }, nil
}

// smallPage is no larger than any page.
const smallPage = 4096
