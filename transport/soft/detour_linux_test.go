package soft

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gopgas/internal/mem"
	"gopgas/transport"
)

// TestDetour: whichever way it lies, what makes a detour arrives whole, both ways, and nothing beside it changes.
func TestDetour(t *testing.T) {
	var m mover
	m.prepare()
	const room = 3*detourBytes + 2*pageBytes
	here, there := make([]byte, room), make([]byte, room)
	for _, n := range []int{detourLeast, detourLeast + 1, detourBytes - 1, detourBytes, detourBytes + 1, 2*detourBytes + 4095} {
		for range 20 {
			for i := range here {
				here[i], there[i] = byte(rand.Uint32()), byte(rand.Uint32())
			}
			i, j := rand.IntN(pageBytes), rand.IntN(pageBytes)
			for _, out := range []bool{true, false} {
				dst, src, from, to := here, there, j, i
				if out {
					dst, src, from, to = there, here, i, j
				}
				want := append([]byte(nil), dst...)
				copy(want[to:], src[from:][:n])
				require.NoError(t, m.detour(out, os.Getpid(), mem.Of(there[j:]).Addr(), mem.Of(here[i:][:n])))
				require.Equal(t, want, dst, "%d bytes, shifts %d and %d, out %t", n, i, j, out)
				require.Nil(t, m.here[0].Base)
			}
		}
	}
}

// TestDetourEnds where memory does.
func TestDetourEnds(t *testing.T) {
	memory, err := unix.Mmap(-1, 0, 2*detourBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(memory)) }()
	require.NoError(t, unix.Mprotect(memory[detourBytes:], unix.PROT_NONE))
	var m mover
	m.prepare()
	here := make([]byte, 2*detourBytes)
	for _, out := range []bool{true, false} {
		require.ErrorIs(t, m.detour(out, os.Getpid(), mem.Of(memory).Addr(), mem.Of(here)), unix.EFAULT)
		require.NoError(t, m.detour(out, os.Getpid(), mem.Of(memory).Addr(), mem.Of(here[:detourBytes])))
	}
}

// TestSkewed: what is short, and what lies well, makes no detour; where this processor is one that stumbles the rest does, written and read.
func TestSkewed(t *testing.T) {
	b := make([]byte, 4*pageBytes)
	at := func(i, n int) mem.Range { return mem.Of(b[i:][:n]) }
	some := false
	for shift := range pageBytes {
		addr := at(shift, 1).Addr()
		require.False(t, skewed(true, at(0, detourLeast-1), addr))
		require.Equal(t, mem.Skewed(uintptr(addr), uintptr(at(0, 1).Addr())), skewed(true, at(0, detourLeast), addr))
		require.Equal(t, skewed(true, at(0, detourLeast), addr), skewed(false, at(shift, detourLeast), at(0, 1).Addr()))
		some = some || skewed(true, at(0, detourLeast), addr)
		if shift == 0 || shift > 31 {
			require.False(t, skewed(true, at(0, detourLeast), addr))
		}
	}
	require.Equal(t, mem.Skewed(1, 0), some)
}

// TestDetourIsTaken by a copy that lies badly, and by no other.
func TestDetourIsTaken(t *testing.T) {
	b := make([]byte, 4*pageBytes)
	for _, shift := range []int{0, 8, 32} {
		var m mover
		m.prepare()
		here, addr := mem.Of(b[:detourLeast]), mem.Of(b[2*pageBytes+shift:]).Addr()
		require.NoError(t, m.push(os.Getpid(), addr, []transport.SGE{{Mem: here}}))
		require.Equal(t, mem.Skewed(uintptr(shift), 0), m.between != nil)
	}
}
