package eager

import (
	"gopgas/internal/mem"

	"golang.org/x/sys/unix"
)

// ready has the kernel give r its memory now, in large pages where it has some: else the first use of each buffer would pay for
// a page of the table. Where the kernel does neither, it is paid then.
func ready(r mem.Range) {
	if r.Bytes < mem.LargePage {
		return
	}
	_ = unix.Madvise(r.Data(), unix.MADV_HUGEPAGE)
	_ = unix.Madvise(r.Data(), unix.MADV_POPULATE_WRITE)
}
