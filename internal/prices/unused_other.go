//go:build !linux

package prices

import "gopgas/internal/mem"

func unused(bytes int) (r mem.Range, free func(), err error) {
	return mem.Of(make([]uint64, (bytes+7)/8)).Slice(0, bytes), func() {}, nil
}
