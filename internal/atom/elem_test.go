package atom

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type (
	celsius float64
	pixel   struct{ X, Y int32 }
	point   struct{ X, Y float32 }
)

// TestTypeCode: types that collectives tell apart have different codes of 16 bits, those of numbers no more than 12, and a name alone makes no other number.
func TestTypeCode(t *testing.T) {
	codes := map[int]string{}
	add := func(code int, name string) {
		require.Positive(t, code, name)
		require.Less(t, code, 1<<16, name)
		require.Empty(t, codes[code], "the same as %s", name)
		codes[code] = name
	}
	for name, code := range map[string]int{
		"int8": TypeCode[int8](), "int16": TypeCode[int16](), "int32": TypeCode[int32](), "int64": TypeCode[int64](),
		"uint8": TypeCode[uint8](), "uint16": TypeCode[uint16](), "uint32": TypeCode[uint32](), "uint64": TypeCode[uint64](),
		"float32": TypeCode[float32](), "float64": TypeCode[float64](), "bool": TypeCode[bool](),
		"complex64": TypeCode[complex64](), "complex128": TypeCode[complex128](),
	} {
		add(code, name)
		require.Less(t, code, 1<<12)
		require.Equal(t, name, NameOf(code))
	}
	require.Equal(t, TypeCode[int64](), TypeCode[int]())
	require.Equal(t, TypeCode[uint64](), TypeCode[uint]())
	require.Equal(t, TypeCode[float64](), TypeCode[celsius]())
	for name, code := range map[string]int{
		"pixel": TypeCode[pixel](), "point": TypeCode[point](), "pair": TypeCode[[2]int32](), "bytes": TypeCode[[8]byte](), "pixels": TypeCode[[2]pixel](),
	} {
		add(code, name)
		require.GreaterOrEqual(t, code, 1<<15)
		require.Contains(t, NameOf(code), "a struct or array (type ")
	}
}
