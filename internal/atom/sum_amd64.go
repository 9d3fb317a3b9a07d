//go:build !purego && !race && !msan && !asan

package atom

import (
	"reflect"

	"golang.org/x/sys/cpu"

	"gopgas/internal/mem"
)

// Sums go 32 bytes at a time. A loop of Go's stores one element in a cycle, which was a third of a long reduction.
const (
	sumStep  = 128
	leastSum = 2 * sumStep
	// sumPiece is how much one call adds. The collector stops a goroutine between two.
	sumPiece = 64 << 10
)

// sumLong adds elements of b to those of a from the front on, as many as go together, and returns of how many bytes they are.
func sumLong(kind reflect.Kind, a, b mem.Range) (done int) {
	if a.Bytes < leastSum || b.Bytes < a.Bytes || !cpu.X86.HasAVX2 {
		return 0
	}
	var sum func(a, b *byte, n int)
	switch kind {
	case reflect.Float64:
		sum = sumFloat64
	case reflect.Float32:
		sum = sumFloat32
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr:
		sum = sumInt64
	case reflect.Int32, reflect.Uint32:
		sum = sumInt32
	default:
		return 0
	}
	x, y, n := a.Data(), b.Data(), a.Bytes/sumStep*sumStep
	for ; done < n; done += sumPiece {
		sum(&x[done], &y[done], min(sumPiece, n-done))
	}
	return n
}

//go:noescape
func sumFloat64(a, b *byte, n int)

//go:noescape
func sumFloat32(a, b *byte, n int)

//go:noescape
func sumInt64(a, b *byte, n int)

//go:noescape
func sumInt32(a, b *byte, n int)
