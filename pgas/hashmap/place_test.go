package hashmap

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryPlaceIsTried: from a key's home on each place comes once, and what lies there is known by its word (H1, H2).
func TestEveryPlaceIsTried(t *testing.T) {
	for _, c := range [][2]int{{0, 1}, {1, 1}, {1, 3}, {10, 4}, {33, 7}} {
		tb := newTable(c[0], c[1])
		require.GreaterOrEqual(t, tb.places(), max(1, 2*c[0]))
		for _, key := range []uint64{0, 1, 2, 77, lone - 1, lone, lone + 1} {
			seen := map[[2]int]bool{}
			for i := range tb.tries(key) {
				member, disp := tb.place(key, i)
				require.True(t, member >= 0 && member < tb.p && disp >= 0 && disp < tb.part())
				require.Equal(t, key >= lone, disp >= tb.per)
				back, ok := tb.keyOf(word(key), disp)
				require.True(t, ok)
				require.Equal(t, key, back)
				seen[[2]int{member, disp}] = true
			}
			require.Len(t, seen, tb.tries(key))
			require.NotContains(t, []uint64{free, dead}, word(key))
		}
	}
	for _, none := range []uint64{free, dead} {
		_, ok := newTable(10, 4).keyOf(none, 0)
		require.False(t, ok)
	}
}

// TestOneGrowthIsEnough: whatever there is and is left to add, after what enough asks for there is room for a round, in which somebody adds something, and which cannot
// fill the map even if all keys are new.
func TestOneGrowthIsEnough(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		tb := newTable(rng.IntN(100), 1+rng.IntN(9))
		c := counts{taken: rng.IntN(tb.places() + 1), spares: rng.IntN(tb.p*spare + 1)}
		c.live = rng.IntN(c.taken + 1)
		left := 1 + rng.IntN(500)
		if capacity, grow := tb.enough(left, c); grow {
			require.GreaterOrEqual(t, capacity, tb.capacity())
			tb, c = newTable(capacity, tb.p), counts{live: c.live, taken: c.live, spares: min(c.spares, 2)}
			_, again := tb.enough(left, c)
			require.False(t, again, "%+v", tb)
		}
		n := tb.share(left, c)
		require.Positive(t, n)
		require.LessOrEqual(t, c.taken+min(left, tb.p*n), tb.capacity())
		require.LessOrEqual(t, c.spares+2, tb.p*spare)
	}
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
