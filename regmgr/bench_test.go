package regmgr

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

func TestCachedUseAllocatesNothing(t *testing.T) {
	m := managerOn(t, newNIC(), Config{})
	q := Request{Mem: heap(4)}
	var h Hold
	require.NoError(t, m.Acquire(&h, q))
	m.Release(&h)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = m.Acquire(&h, q)
		m.Release(&h)
	}))
}

// BenchmarkCachedUse is Acquire and Release of a cached region among so many others.
func BenchmarkCachedUse(b *testing.B) {
	for _, regions := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(regions), func(b *testing.B) {
			m := managerOn(b, newNIC(), Config{HeapBytes: 1 << 40})
			all := mem.Of(make([]byte, regions*512))
			for i := range regions {
				m.Release(acquire(b, m, all.Slice(i*512, 512), 0))
			}
			var h Hold
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				_ = m.Acquire(&h, Request{Mem: all.Slice((i&7)*7919%regions*512, 512)})
				m.Release(&h)
				i++
			}
		})
	}
}
