package hashmap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryPlaceIsTried: from a key's home on each place comes once, and what lies there is known by its word (H1, H2).
func TestEveryPlaceIsTried(t *testing.T) {
	for _, c := range [][2]int{{0, 1}, {1, 1}, {1, 3}, {10, 4}, {33, 7}} {
		tb := newTable(c[0], c[1])
		require.GreaterOrEqual(t, tb.places(), max(1, 2*c[0]))
		for _, key := range []uint64{0, 1, 2, 77, lone - 1, lone} {
			seen := map[[2]int]bool{}
			for i := range tb.tries(key) {
				member, disp := tb.place(key, i)
				require.True(t, member >= 0 && member < tb.p && disp >= 0 && disp < tb.part())
				require.Equal(t, key, tb.keyOf(word(key), disp))
				seen[[2]int{member, disp}] = true
			}
			require.Len(t, seen, tb.tries(key))
			require.NotZero(t, word(key))
		}
	}
	member, disp := newTable(10, 4).place(lone, 0)
	require.Equal(t, []int{0, 5}, []int{member, disp}) // behind the others
}

// TestKeysAreSpread: keys that follow each other, or differ in high bits only, have homes all over.
func TestKeysAreSpread(t *testing.T) {
	tb := newTable(1000, 8)
	for _, step := range []uint64{1, 1 << 20, 1 << 50} {
		var on [8]int
		for i := range uint64(4000) {
			member, _ := tb.place(i*step, 0)
			on[member]++
		}
		for _, n := range on {
			require.InDelta(t, 500, n, 120)
		}
	}
}
