package mem

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	var none *Names
	a, b := heapBytes(8192), heapBytes(100)
	require.Equal(t, Of(a).Addr(), none.Of(Of(a)), "real time")
	for range 2 { // the same each time
		n := NewNames()
		require.EqualValues(t, 1<<nameBits, n.Of(Of(a)))
		require.EqualValues(t, 2<<nameBits, n.Of(Of(a[5000:])))
		require.EqualValues(t, 3<<nameBits, n.Of(Of(b)))
		require.EqualValues(t, 1<<nameBits, n.Of(Of(a[:1])), "a name is of an address")
		require.EqualValues(t, 4<<nameBits, n.Of(Of(fixed[:])))
		require.EqualValues(t, 4<<nameBits, n.Of(Of(fixed[:7])))
		require.Zero(t, n.Of(Range{}))
		require.Zero(t, nameOfLocal(n))
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

var fixed [64]byte

//go:noinline
func heapBytes(n int) []byte { return make([]byte, n) }

//go:noinline
func nameOfLocal(n *Names) uint64 {
	var local [64]byte
	return n.Of(Hidden(Of(local[:])))
}

// TestNamesOfReusedMemory: what the collector has given to somebody else is other memory.
func TestNamesOfReusedMemory(t *testing.T) {
	n := NewNames()
	names, places := map[uint64]bool{}, map[uint64]bool{}
	const rounds = 50
	for range rounds {
		b := make([]byte, 1<<20)
		places[Of(b).Addr()], names[n.Of(Of(b))] = true, true
		runtime.KeepAlive(b)
		runtime.GC()
	}
	require.Less(t, len(places), rounds, "the collector reuses memory")
	require.Len(t, names, rounds)
}

// TestNamesAreForgotten: a program that uses each buffer once does not have ever more names.
func TestNamesAreForgotten(t *testing.T) {
	n := NewNames()
	kept := make([]byte, 1000)
	name := n.Of(Of(kept))
	began := time.Now()
	for range 20 {
		for range 1000 {
			n.Of(Of(make([]byte, 1000)))
		}
		runtime.GC()
		require.Equal(t, name, n.Of(Of(kept)))
	}
	require.Less(t, len(n.names), 5*leastSwept)
	require.Less(t, len(n.objects), 5*leastSwept)
	large := make([]byte, 1<<18)
	for i := range large {
		n.Of(Of(large[i:]))
	}
	require.Less(t, time.Since(began), 30*time.Second, "each part of an object costs the same")
	runtime.KeepAlive(kept)
	runtime.KeepAlive(large)
}
