package atom

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

// TestSumOfManyIsThatOfEach: sums of ranges, of all types and lengths and at all places, are bit by bit those of one element after the other, and touch nothing else.
func TestSumOfManyIsThatOfEach(t *testing.T) {
	sumsOf(t, func() float64 { return math.Float64frombits(rand.Uint64()) })
	sumsOf(t, func() float32 { return math.Float32frombits(rand.Uint32()) })
	sumsOf(t, rand.Int64)
	sumsOf(t, rand.Uint64)
	sumsOf(t, rand.Int)
	sumsOf(t, func() int32 { return int32(rand.Uint32()) })
	sumsOf(t, rand.Uint32)
	sumsOf(t, func() int16 { return int16(rand.Uint32()) })
	sumsOf(t, func() uint8 { return uint8(rand.Uint32()) })
}

func sumsOf[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64](t *testing.T, value func() T) {
	t.Helper()
	bits := func(s []T) []byte { return append([]byte(nil), mem.Of(s).Data()...) }
	for _, n := range []int{0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 1000, 8192, 20011} {
		for shift := range 5 {
			a, b := make([]T, n+shift+3), make([]T, n+2*shift+1)
			for i := range a {
				a[i] = value()
			}
			for i := range b {
				b[i] = value()
			}
			want := append([]T(nil), a...)
			for i := range n {
				want[shift+i] += b[2*shift+i]
			}
			untouched := bits(b)
			FoldRange(Sum, ElemOf[T](), mem.Of(a[shift:shift+n]), mem.Of(b[2*shift:2*shift+n]))
			require.Equal(t, bits(want), bits(a), "%d elements of %T, shifted by %d", n, a[0], shift)
			require.Equal(t, untouched, bits(b))
			if n > 0 {
				FoldRange(Sum, ElemOf[T](), mem.Of(a[:n]), mem.Of(a[:n])) // with themselves
				for i := range n {
					want[i] += want[i]
				}
				require.Equal(t, bits(want[:n]), bits(a[:n]), "%d elements of %T twice", n, a[0])
			}
		}
	}
}

func BenchmarkSum(b *testing.B) {
	x, y := make([]float64, 4096), make([]float64, 4096)
	b.SetBytes(int64(8 * len(x)))
	for b.Loop() {
		FoldRange(Sum, ElemOf[float64](), mem.Of(x), mem.Of(y))
	}
}
