package atom

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/mem"
)

// pattern are operands that go wrong first: zeros, ones, the ends of the ranges, NaNs, infinities, denormals.
func pattern(rng *rand.Rand) []uint64 {
	out := []uint64{
		0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<63 - 1, 1 << 63, ^uint64(0),
		math.Float64bits(math.NaN()), math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), math.Float64bits(1.5),
		math.Float64bits(math.Copysign(0, -1)), math.Float64bits(math.MaxFloat64), math.Float64bits(5e-324),
		uint64(math.Float32bits(float32(math.NaN()))), uint64(math.Float32bits(float32(math.Inf(1)))), uint64(math.Float32bits(-2.5)),
		uint64(math.Float32bits(math.MaxFloat32)),
	}
	for range 30 {
		out = append(out, rng.Uint64())
	}
	return out
}

type real interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func valueOf[T any](u uint64) (v T) {
	one := [1]T{}
	mem.Of(one[:]).SetBits(u)
	return one[0]
}

func bitsOf[T any](v T) uint64 {
	one := [1]T{v}
	return mem.Of(one[:]).Bits()
}

// checkArithmetic compares Combine with Go's own operators on T.
func checkArithmetic[T real](t *testing.T) {
	e := ElemOf[T]()
	mask := ^uint64(0) >> (64 - 8*e.Bytes)
	ops := map[Op]func(a, b T) T{
		Sum: func(a, b T) T { return a + b }, Prod: func(a, b T) T { return a * b },
		Min: func(a, b T) T { return min(a, b) }, Max: func(a, b T) T { return max(a, b) },
		Replace: func(_, b T) T { return b },
	}
	operands := pattern(rand.New(rand.NewPCG(1, uint64(e.Kind))))
	for _, x := range operands {
		for _, y := range operands {
			x, y := x&mask, y&mask
			for op, f := range ops {
				want := f(valueOf[T](x), valueOf[T](y))
				got := valueOf[T](Combine(op, e.Kind, x, y, 0))
				if want != want { // NaN
					require.True(t, got != got, "%s of %s %#x and %#x is %v, not NaN", op, e.Kind, x, y, got)
					continue
				}
				require.Equal(t, bitsOf(want), bitsOf(got), "%s of %s %#x and %#x", op, e.Kind, x, y)
				require.Zero(t, Combine(op, e.Kind, x, y, 0)&^mask, "%s of %s leaves its width", op, e.Kind)
			}
			require.Equal(t, x&y, Combine(And, e.Kind, x, y, 0))
			require.Equal(t, x|y, Combine(Or, e.Kind, x, y, 0))
			require.Equal(t, x^y, Combine(Xor, e.Kind, x, y, 0))
			require.Equal(t, x, Combine(Load, e.Kind, x, y, 7))
			swapped := x
			if x == y {
				swapped = 7
			}
			require.Equal(t, swapped, Combine(CompareSwap, e.Kind, x, y, 7))
		}
	}
}

func TestCombineIsGoArithmetic(t *testing.T) {
	checkArithmetic[int](t)
	checkArithmetic[int8](t)
	checkArithmetic[int16](t)
	checkArithmetic[int32](t)
	checkArithmetic[int64](t)
	checkArithmetic[uint](t)
	checkArithmetic[uint8](t)
	checkArithmetic[uint16](t)
	checkArithmetic[uint32](t)
	checkArithmetic[uint64](t)
	checkArithmetic[uintptr](t)
	checkArithmetic[float32](t)
	checkArithmetic[float64](t)
}

func TestElemCheck(t *testing.T) {
	integers := []Elem{ElemOf[int](), ElemOf[int8](), ElemOf[uint16](), ElemOf[int32](), ElemOf[uint64](), ElemOf[uintptr]()}
	floats := []Elem{ElemOf[float32](), ElemOf[float64]()}
	others := []Elem{ElemOf[bool](), ElemOf[complex64](), ElemOf[[2]int](), ElemOf[struct{ A int }](), {Kind: reflect.Invalid}}
	for op := range CompareSwap + 3 {
		exists := op <= Load
		bits := op == And || op == Or || op == Xor
		for _, e := range integers {
			require.Equal(t, exists, e.Check(op) == nil, "%v on %s", uint8(op), e.Kind)
		}
		for _, e := range floats {
			require.Equal(t, exists && !bits, e.Check(op) == nil, "%v on %s", uint8(op), e.Kind)
		}
		for _, e := range others {
			require.ErrorIs(t, e.Check(op), ErrUndefined, "%v on %s", uint8(op), e.Kind)
		}
	}
}

// TestCPUAtomicOnNarrowElements: an atomic on a narrow element leaves its neighbours alone.
func TestCPUAtomicOnNarrowElements(t *testing.T) {
	words := make([]uint64, 4)
	r := mem.Of(words)
	rng := rand.New(rand.NewPCG(5, 6))
	kinds := map[int]reflect.Kind{1: reflect.Uint8, 2: reflect.Int16, 4: reflect.Uint32, 8: reflect.Int64}
	for range 5000 {
		for n, kind := range kinds {
			for i := range words {
				words[i] = rng.Uint64()
			}
			before := append([]uint64(nil), words...)
			off := n * rng.IntN(32/n)
			mask := ^uint64(0) >> (64 - 8*n)
			op, x, y := Op(rng.IntN(int(CompareSwap)+1)), rng.Uint64()&mask, rng.Uint64()&mask
			old := r.Slice(off, n).Bits()
			if op == CompareSwap && rng.IntN(2) == 0 {
				x = old
			}
			require.Equal(t, old, Do(op, Elem{kind, n}, r, off, x, y))
			require.Equal(t, Combine(op, kind, old, x, y)&mask, r.Slice(off, n).Bits(), "%s", op)
			mem.Of(before).Slice(off, n).SetBits(r.Slice(off, n).Bits())
			require.Equal(t, before, words, "%s at %d touched a neighbour", op, off)
		}
	}
}
