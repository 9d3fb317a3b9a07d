package mem

import "golang.org/x/sys/unix"

// inLargePages advises the kernel, which need not follow.
func inLargePages(r Range) { _ = unix.Madvise(r.Data(), unix.MADV_HUGEPAGE) }
