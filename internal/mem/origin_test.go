package mem

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var (
	static [1 << 16]byte
	sink   [2][]byte // what lies in it is on the heap
)

//go:noinline
func onStack(depth int) Origin {
	var local [4096]byte
	if depth > 0 {
		return onStack(depth - 1)
	}
	local[7] = byte(depth)
	return OriginOf(Hidden(Of(local[:])))
}

func TestOriginOf(t *testing.T) {
	sink = [2][]byte{make([]byte, 24), make([]byte, 3<<20)}
	small, large := sink[0], sink[1]
	require.Equal(t, Heap, OriginOf(Of(small)))
	require.Equal(t, Heap, OriginOf(Of(large)))
	require.Equal(t, Heap, OriginOf(Of(large[1<<20:][:77])), "inside of an object")
	require.Equal(t, Heap, OriginOf(Of(large[len(large)-1:])))
	require.Equal(t, Unknown, OriginOf(Range{}))
	require.Equal(t, Foreign, OriginOf(Of(static[:])))

	m, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	require.Equal(t, Foreign, OriginOf(Of(m)))
	require.NoError(t, unix.Munmap(m))

	for _, depth := range []int{0, 1, 300} {
		require.Equal(t, Unknown, onStack(depth), "a stack, %d frames deep", depth)
	}
	done := make(chan Origin)
	go func() { done <- onStack(2) }()
	require.Equal(t, Unknown, <-done)

	a, b := Of(small), Of(large)
	if a.Addr() > b.Addr() {
		a, b = b, a
	}
	require.Equal(t, Unknown, OriginOf(At(uintptr(a.Base), int(b.Addr()-a.Addr())+8)), "two objects")
	runtime.KeepAlive(sink)
	require.Zero(t, testing.AllocsPerRun(100, func() { OriginOf(Of(large)) }))
}

func TestAroundStaysWithin(t *testing.T) {
	const page = 4096
	whole := Of(make([]byte, 16*page))
	for _, c := range []struct{ off, n int }{{0, 1}, {1, page}, {page - 1, 2}, {5 * page, page}, {16*page - 1, 1}, {0, 16 * page}} {
		r := whole.Slice(c.off, c.n)
		w := Around(r, whole, page)
		require.True(t, w.Contains(r) && whole.Contains(w), "%+v", c)
		require.Equal(t, Pages(r, page), Pages(w, page), "widening takes no new page")
		require.Equal(t, r, Around(r, r, page))
	}
	require.Equal(t, 2, Pages(Of(make([]byte, 2*page)).Slice(0, page+1), page), "large objects lie on page boundaries")
}

func BenchmarkOriginOf(b *testing.B) {
	r := Of(make([]byte, 1<<20))
	b.ReportAllocs()
	for b.Loop() {
		OriginOf(r)
	}
}
