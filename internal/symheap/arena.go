package symheap

import (
	"fmt"
	"slices"

	"gopgas/internal/invariants"
)

// Align is the alignment of every block, in bytes: two cache lines, since processors fetch them in pairs and
// two ranks' flags must not share one.
const Align = 128

// arena places blocks in a chunk of a fixed size. It is a pure value: equal calls give equal places. The zero
// arena is empty and full.
type arena struct {
	bytes int
	gaps  []gap       // free space, by offset, never adjacent, never empty
	used  map[int]int // offset → bytes of the blocks
	inUse int         // bytes of all blocks
	fresh int         // from here on nothing was ever placed
}

type gap struct{ off, bytes int }

func newArena(bytes int) *arena {
	bytes = bytes / Align * Align
	a := &arena{bytes: bytes, used: make(map[int]int)}
	if bytes > 0 {
		a.gaps = []gap{{0, bytes}}
	}
	return a
}

// roundUp makes bytes a multiple of Align, and at least that.
func roundUp(bytes int) int { return max(Align, (bytes+Align-1)/Align*Align) }

// alloc places bytes in the first gap that holds them. The place is clean if no block was there before.
func (a *arena) alloc(bytes int) (off int, clean, ok bool) {
	bytes = roundUp(bytes)
	for i, g := range a.gaps {
		if g.bytes < bytes {
			continue
		}
		if g.bytes == bytes {
			a.gaps = slices.Delete(a.gaps, i, i+1)
		} else {
			a.gaps[i] = gap{g.off + bytes, g.bytes - bytes}
		}
		a.used[g.off] = bytes
		a.inUse += bytes
		clean = g.off >= a.fresh
		a.fresh = max(a.fresh, g.off+bytes)
		a.check()
		return g.off, clean, true
	}
	return 0, false, false
}

// free gives the block at off back.
func (a *arena) free(off int) error {
	bytes, ok := a.used[off]
	if !ok {
		return fmt.Errorf("free of offset %d: no block begins there", off)
	}
	delete(a.used, off)
	a.inUse -= bytes
	i, _ := slices.BinarySearchFunc(a.gaps, off, func(g gap, off int) int { return g.off - off })
	a.gaps = slices.Insert(a.gaps, i, gap{off, bytes})
	if i+1 < len(a.gaps) && a.gaps[i].off+a.gaps[i].bytes == a.gaps[i+1].off {
		a.gaps[i].bytes += a.gaps[i+1].bytes
		a.gaps = slices.Delete(a.gaps, i+1, i+2)
	}
	if i > 0 && a.gaps[i-1].off+a.gaps[i-1].bytes == a.gaps[i].off {
		a.gaps[i-1].bytes += a.gaps[i].bytes
		a.gaps = slices.Delete(a.gaps, i, i+1)
	}
	a.check()
	return nil
}

// check has blocks and gaps be all of the arena, and gaps be apart from each other, in order.
func (a *arena) check() {
	if !invariants.Enabled {
		return
	}
	sum, end := a.inUse, -1
	for _, g := range a.gaps {
		invariants.Check(g.off > end && g.bytes > 0, "gaps of the symmetric heap touch, or are out of order")
		_, taken := a.used[g.off]
		invariants.Check(!taken, "a gap of the symmetric heap begins where a block does")
		sum, end = sum+g.bytes, g.off+g.bytes
	}
	invariants.Check(sum == a.bytes && end <= a.bytes, "blocks and gaps of the symmetric heap are not all of it")
}

// empty reports whether no block is left.
func (a *arena) empty() bool { return len(a.used) == 0 }
