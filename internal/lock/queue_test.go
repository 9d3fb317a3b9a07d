package lock

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNextHolders is a golden table of who gets a read-write lock.
func TestNextHolders(t *testing.T) {
	r := func(place uint64) uint64 { return rwWord(place, 1, rwRead) }
	w := func(place uint64) uint64 { return rwWord(place, 1, rwWrite) }
	h := func(word uint64) uint64 { return word | rwHolds }
	for _, c := range []struct {
		words []uint64
		gone  int
		want  []int
	}{
		{[]uint64{0, 0}, -1, nil},
		{[]uint64{0, w(3)}, -1, []int{1}},
		{[]uint64{w(4), w(3)}, -1, []int{1}},
		{[]uint64{r(4), r(3), r(9)}, -1, []int{1, 0, 2}},
		{[]uint64{r(4), w(5), r(6)}, -1, []int{0}},      // a reader does not pass a writer
		{[]uint64{r(4), w(5), r(6)}, 1, []int{0, 2}},    // who is gone keeps nobody
		{[]uint64{h(r(4)), w(5), r(6)}, -1, nil},        // nor while others read
		{[]uint64{h(r(4)), r(5), w(6)}, -1, []int{1}},   // but one joins those
		{[]uint64{h(w(4)), r(5), w(6)}, -1, nil},        // a writer is alone
		{[]uint64{h(w(4)), r(5), w(6)}, 0, nil},         // and dead it still holds
		{[]uint64{0, r(5), w(6), r(7)}, -1, []int{1}},   // released: the next
		{[]uint64{0, 0, w(6), r(7)}, -1, []int{2}},      //
		{[]uint64{0, 0, w(6), r(7)}, 2, []int{3}},       //
		{[]uint64{0, 0, h(r(6)), r(7), 0}, 2, []int{3}}, // reads beside a dead reader
	} {
		gone := func(m int) bool { return m == c.gone }
		require.Equal(t, c.want, rwNextHolders(c.words, gone), "%x, %d gone", c.words, c.gone)
	}
}

// TestMayEnter is a golden table of who gets a read-write lock without standing in its queue: member 0, in each case.
func TestMayEnter(t *testing.T) {
	r := func(place uint64) uint64 { return rwWord(place, 1, rwRead) }
	w := func(place uint64) uint64 { return rwWord(place, 1, rwWrite) }
	h := func(word uint64) uint64 { return word | rwHolds }
	for _, c := range []struct {
		words       []uint64
		gone        int
		read, write bool
	}{
		{[]uint64{0}, -1, true, true},
		{[]uint64{0, h(r(1))}, -1, true, false},
		{[]uint64{0, h(w(1))}, -1, false, false},
		{[]uint64{0, h(r(1)), w(2)}, -1, false, false}, // not past a writer
		{[]uint64{0, h(r(1)), w(2)}, 2, true, false},   // unless it is gone
		{[]uint64{0, h(w(1)), 0}, 1, false, false},     // dead it still holds
		{[]uint64{0, r(5), w(6)}, 2, true, false},      // beside a reader that is let in now
	} {
		gone := func(m int) bool { return m == c.gone }
		before := slices.Clone(c.words)
		require.Equal(t, c.read, rwMayEnter(c.words, 0, rwRead, gone), "read: %x, %d gone", c.words, c.gone)
		require.Equal(t, c.write, rwMayEnter(c.words, 0, rwWrite, gone), "write: %x, %d gone", c.words, c.gone)
		require.Equal(t, before, c.words)
	}
}
