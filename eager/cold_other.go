//go:build !linux

package eager

import (
	"time"

	"gopgas/internal/mem"
)

func coldMemory(now func() time.Duration) (r mem.Range, free func(), err error) {
	b := make([]uint64, coldMost/8)
	got := grow(now, func(from, bytes int) { clear(b[from/8 : (from+bytes)/8]) })
	return mem.Of(b).Slice(0, got), func() {}, nil
}
