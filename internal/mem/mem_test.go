package mem

import (
	"bytes"
	"math"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

type node struct{ Next *node }

func TestCheckElem(t *testing.T) {
	good := map[string]error{
		"int8": CheckElem[int8](), "uintptr": CheckElem[uintptr](), "complex": CheckElem[complex128](), "bool": CheckElem[bool](),
		"array": CheckElem[[3]byte](), "struct": CheckElem[struct {
			A int32
			B [2]struct{ C float64 }
		}](),
	}
	for name, err := range good {
		require.NoError(t, err, name)
	}
	bad := map[string]error{
		"pointer": CheckElem[*int](), "string": CheckElem[string](), "slice": CheckElem[[]int](), "map": CheckElem[map[int]int](),
		"chan": CheckElem[chan int](), "func": CheckElem[func()](), "any": CheckElem[any](), "unsafe": CheckElem[unsafe.Pointer](),
		"deep":    CheckElem[struct{ A [2]struct{ B, C string } }](),
		"cycle":   CheckElem[node](),
		"nothing": CheckElem[struct{}](), "no elements": CheckElem[[0]int](), "empty of pointers": CheckElem[struct {
			A [0]*int
			B int
		}](),
	}
	for name, err := range bad {
		require.ErrorIs(t, err, ErrElem, name)
	}
	require.ErrorContains(t, bad["deep"], ".A[0].B is a string")
}

// panics reports whether f does.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestSliceBounds(t *testing.T) {
	const size = 8
	r := Of(make([]byte, size))
	for off := -2; off <= size+2; off++ {
		for n := -2; n <= size+2; n++ {
			inside := off >= 0 && n >= 0 && off+n <= size
			require.Equal(t, !inside, panics(func() {
				s := r.Slice(off, n)
				require.Equal(t, n, s.Bytes)
				if n > 0 {
					require.Equal(t, r.Addr()+uint64(off), s.Addr())
				}
				require.True(t, r.Contains(s))
			}), "[%d:+%d]", off, n)
		}
	}
	const most = int(^uint(0) >> 1)
	require.Panics(t, func() { r.Slice(1, most) }, "a sum that wraps around")
	require.Panics(t, func() { r.Slice(most, 1) })
	require.Zero(t, Range{}.Slice(0, 0).Bytes)
	require.Empty(t, Range{}.Data())
}

// TestWordBounds pins M2. Offsets outside must panic and not be computed with: the race build's pointer checks end
// the process for that.
func TestWordBounds(t *testing.T) {
	r := Of(make([]uint64, 4))
	inner := r.Slice(8, 16)
	for off := -20; off <= 40; off++ {
		require.Equal(t, off < 0 || off > 8 || off%8 != 0, panics(func() { inner.Word64(off).Store(1) }), "Word64(%d)", off)
		require.Equal(t, off < 0 || off > 12 || off%4 != 0, panics(func() { inner.Word32(off).Store(1) }), "Word32(%d)", off)
		require.Equal(t, off < 0 || off > 15, panics(func() { inner.Around32(off) }), "Around32(%d)", off)
	}
	words := Slice[uint64](r)
	require.Zero(t, words[0])
	require.Zero(t, words[3])
}

func TestAround32FindsEveryByte(t *testing.T) {
	want := []byte{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88}
	words := make([]uint64, 1)
	r := Of(words)
	copy(r.Data(), want)
	for off, b := range want {
		w, shift := r.Around32(off)
		require.Equal(t, b, byte(w.Load()>>shift))
		w.Store(w.Load() ^ 0xff<<shift)
		require.Equal(t, b^0xff, r.Data()[off])
		require.Equal(t, 1, countDiff(want, r.Data()))
		copy(r.Data(), want)
	}
}

func countDiff(a, b []byte) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

func TestTypedViews(t *testing.T) {
	b := make([]byte, 16)
	require.Len(t, Slice[[3]byte](Of(b)), 5, "a rest is left out")
	require.Nil(t, Slice[uint64](Of(b).Slice(0, 7)))
	require.Nil(t, Slice[struct{}](Of(b)))
	require.Equal(t, 12, Of(make([][3]int32, 1)).Bytes)
	s := []int32{1, 2, 3}
	Slice[int32](Of(s))[1] = 7
	require.Equal(t, []int32{1, 7, 3}, s)
	require.Equal(t, Of(s), At(uintptr(unsafe.Pointer(&s[0])), 12))
}

func TestBitsRoundTrip(t *testing.T) {
	b := make([]uint64, 3)
	for _, n := range []int{1, 2, 4, 8} {
		for off := 0; off+n <= 24; off += n {
			r := Of(b).Slice(off, n)
			before := bytes.Clone(Of(b).Data())
			v := uint64(0xfedcba9876543210) >> (64 - 8*n)
			r.SetBits(v)
			require.Equal(t, v, r.Bits())
			copy(before[off:], Of(b).Data()[off:off+n])
			require.Equal(t, before, Of(b).Data(), "%d bytes at %d touched others", n, off)
		}
	}
}

func TestFencesReturn(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(10, func() { FullFence(); StoreFence() }))
	w := new(atomic.Uint64)
	require.Zero(t, testing.AllocsPerRun(10, func() { Publish(w, w.Load()+1) }))
	require.EqualValues(t, 11, w.Load())
}

func TestText(t *testing.T) {
	require.Equal(t, []string{"0 bytes", "1023 bytes", "1.0 KiB", "64.0 MiB", "2.5 GiB", "8.0 EiB", "16.0 EiB", "-1 bytes", "1 byte"},
		[]string{Text(0), Text(1023), Text(int64(1024)), Text(64 << 20), Text(5 << 29), Text(int64(math.MaxInt64)), Text(uint64(math.MaxUint64)), Text(-1), Text(1)})
}

// TestPrefetchNeverFaults: it is asked for what is in no mapping, and for the last byte of one.
func TestPrefetchNeverFaults(t *testing.T) {
	b := make([]byte, 1)
	Prefetch(unsafe.Pointer(&b[0]))
	Prefetch(nil)
	require.Zero(t, testing.AllocsPerRun(10, func() { Prefetch(unsafe.Pointer(&b[0])) }))
}
