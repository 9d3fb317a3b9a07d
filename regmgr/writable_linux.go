package regmgr

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
)

// probeWrite asks the kernel to bring the pages in for writing, as registering them for a destination would: that fails
// where they cannot be written (madvise(2), MADV_POPULATE_WRITE, since Linux 5.14). Older kernels know the mappings' rights
// at least.
func probeWrite(r mem.Range, page int) bool {
	lo := r.Addr() &^ uint64(page-1)
	err := unix.Madvise(mem.At(uintptr(lo), int(r.Addr()-lo)+r.Bytes).Data(), unix.MADV_POPULATE_WRITE)
	if err == nil {
		return true
	}
	return !errors.Is(err, unix.EFAULT) && mapsSayWritable(r)
}

// mapsSayWritable reads whether all of r lies in mappings that may be written.
func mapsSayWritable(r mem.Range) bool {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return true // nobody knows: the NIC will tell
	}
	defer f.Close()
	at, end := r.Addr(), r.Addr()+uint64(r.Bytes)
	for s := bufio.NewScanner(f); s.Scan() && at < end; {
		var lo, hi uint64
		var rights string
		if _, err := fmt.Sscanf(s.Text(), "%x-%x %s", &lo, &hi, &rights); err != nil || hi <= at {
			continue
		}
		if lo > at || !strings.Contains(rights, "w") {
			return false
		}
		at = hi
	}
	return at >= end
}
