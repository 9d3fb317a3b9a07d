package symheap

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// units is the naive model of an arena: a flag for each piece of Align bytes.
type units struct {
	used, touched []bool
	blocks        map[int]int // offset → units
}

func newUnits(bytes int) *units {
	n := bytes / Align
	return &units{make([]bool, n), make([]bool, n), map[int]int{}}
}

// alloc finds the first hole that is large enough.
func (u *units) alloc(bytes int) (off int, clean, ok bool) {
	n := max(1, (bytes+Align-1)/Align)
	for at, free := 0, 0; at < len(u.used); at++ {
		if u.used[at] {
			free = 0
			continue
		}
		if free++; free == n {
			at -= n - 1
			clean = true
			for i := at; i < at+n; i++ {
				clean = clean && !u.touched[i]
				u.used[i], u.touched[i] = true, true
			}
			u.blocks[at*Align] = n
			return at * Align, clean, true
		}
	}
	return 0, false, false
}

func (u *units) free(off int) bool {
	n, ok := u.blocks[off]
	for i := range n {
		u.used[off/Align+i] = false
	}
	delete(u.blocks, off)
	return ok
}

// same compares an arena with its model and checks what must always hold of gaps.
func same(t *testing.T, a *arena, u *units) {
	free, at := make([]bool, len(u.used)), -1
	for _, g := range a.gaps {
		require.Positive(t, g.bytes)
		require.Greater(t, g.off, at, "gaps in order and never adjacent")
		require.Zero(t, g.off%Align)
		require.Zero(t, g.bytes%Align)
		at = g.off + g.bytes
		for i := g.off / Align; i < at/Align; i++ {
			free[i] = true
		}
	}
	inUse := 0
	for i := range free {
		require.Equal(t, u.used[i], !free[i], "unit %d", i)
		if u.used[i] {
			inUse += Align
		}
	}
	require.Equal(t, inUse, a.inUse)
	require.Equal(t, len(u.blocks) == 0, a.empty())
}

// play runs a trace: an even byte allocates, an odd one frees the block that it chooses or an offset where none is.
func play(t *testing.T, bytes int, trace []byte) {
	a, u := newArena(bytes), newUnits(bytes)
	var order []int
	for i, b := range trace {
		if b&1 == 0 {
			size := int(b) * int(b) / 16
			off, clean, ok := a.alloc(size)
			wantOff, wantClean, wantOK := u.alloc(size)
			require.Equal(t, wantOK, ok, "step %d", i)
			if ok {
				require.Equal(t, wantOff, off, "step %d", i)
				// A place may be called dirty that is clean; never the other way round.
				require.False(t, clean && !wantClean, "step %d: a place that had a block is called clean", i)
				order = append(order, off)
			}
		} else if len(order) > 0 && b < 250 {
			k := int(b>>1) % len(order)
			off := order[k]
			order = append(order[:k], order[k+1:]...)
			require.NoError(t, a.free(off))
			require.True(t, u.free(off))
			require.Error(t, a.free(off), "freed twice")
		} else {
			require.Error(t, a.free(int(b)))
		}
	}
	same(t, a, u)
	for _, off := range order {
		require.NoError(t, a.free(off))
	}
	require.True(t, a.empty())
	if a.bytes > 0 {
		require.Equal(t, []gap{{0, a.bytes}}, a.gaps, "all gaps have grown together")
	}
}

func TestArenaTable(t *testing.T) {
	a := newArena(10*Align + 5)
	require.Equal(t, 10*Align, a.bytes)
	for i, size := range []int{0, 1, Align, Align + 1} {
		off, clean, ok := a.alloc(size)
		require.True(t, ok && clean)
		require.Equal(t, i*Align, off)
	}
	_, _, ok := a.alloc(6 * Align)
	require.False(t, ok, "5 units are left")
	require.NoError(t, a.free(Align))
	off, clean, ok := a.alloc(1)
	require.True(t, ok && !clean, "a block was there")
	require.Equal(t, Align, off)
	require.Error(t, a.free(7))
	require.Error(t, a.free(9*Align))

	var none arena
	_, _, ok = none.alloc(1)
	require.False(t, ok)
	require.True(t, none.empty())
	_, _, ok = newArena(Align - 1).alloc(1)
	require.False(t, ok)
}

func TestArenaRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		trace := make([]byte, rng.IntN(200))
		for i := range trace {
			trace[i] = byte(rng.IntN(256))
		}
		play(t, rng.IntN(64*Align), trace)
	}
}

func FuzzArena(f *testing.F) {
	f.Add(uint16(4096), []byte{2, 4, 8, 1, 3, 100, 255, 1})
	f.Fuzz(func(t *testing.T, bytes uint16, trace []byte) { play(t, int(bytes), trace) })
}
