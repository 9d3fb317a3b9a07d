package coll

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChoices is a golden table of methods of prefixes.
func TestChoices(t *testing.T) {
	const floats, ints = false, true
	for _, c := range []struct {
		n, bytes, slot, most int
		exact                bool
		want                 method
	}{
		{1, 1 << 20, 512, 2000, ints, direct},
		{2, 1 << 20, 512, 2000, ints, direct},
		{3, 8<<10 - 1, 512, 2000, ints, direct},
		{3, 8 << 10, 512, 2000, ints, segmented},
		{8, 8, 512, 2000, ints, direct},
		{9, 8, 512, 2000, floats, gathered},
		{9, 512, 512, 2000, floats, gathered},
		{9, 513, 512, 2000, floats, segmented},
		{9, 8, 512, 2000, ints, doubled},
		{9, 2000, 512, 2000, ints, doubled},
		{9, 2001, 512, 2000, ints, segmented},
		{9, 8, 512, 0, ints, gathered}, // nodes that are not in order
		{1000, 32, 32, 1000, floats, gathered},
		{1000, 40, 32, 1000, floats, segmented},
	} {
		require.Equal(t, c.want, choose(c.n, c.bytes, c.slot, c.most, c.exact), "%+v", c)
	}
}

// TestSteps is a golden table of when data goes in steps.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		n, circle, part, most int
		want                  bool
	}{
		{1, 1, 0, 512, false},
		{2, 2, 8, 512, false},
		{60, 60, 8, 264, false},
		{61, 61, 8, 264, true},
		{61, 61, 264, 264, true},
		{61, 61, 265, 264, false},
		{61, 61, 8, 0, false},
		{66, 17, 8, 240, false}, // on 17 nodes
		{128, 16, 8, 120, false},
		{129, 16, 8, 120, true},
	} {
		require.Equal(t, c.want, inSteps(c.n, c.circle, c.part, c.most), "%+v", c)
	}
}

func TestCounts(t *testing.T) {
	require.Equal(t, []int{0, 6, 6, 15}, begins([]int{2, 0, 3}, 3))
	for _, c := range [][6]int{{0, 10, 5, 20, 5, 10}, {0, 10, 10, 20, 10, 10}, {10, 20, 0, 5, 10, 10}, {4, 8, 0, 100, 4, 8}} {
		begin, end := overlap(c[0], c[1], c[2], c[3])
		require.Equal(t, c[4:], []int{begin, end})
	}
}

// TestWaysOfLongData is a golden table of how long data travels.
func TestWaysOfLongData(t *testing.T) {
	const payload = 16320
	for _, c := range []struct {
		n, whole int
		want     bool
	}{{1, 1 << 20, false}, {2, payload, false}, {2, payload + 1, true}, {64, 64, false}, {64, 64 << 20, true}, {17, 0, false}} {
		require.Equal(t, c.want, pushes(c.n, c.whole, payload), "%+v", c)
	}
	for _, c := range []struct {
		n, part, longest int
		legs             int
		want             bool
	}{
		{1, 1 << 20, 1 << 20, 0, false},
		{2, 0, 0, 1, false},
		{2, 8000, 16000, 1, false},
		{2, 9000, 18000, 1, true},
		{2, 1 << 20, 2 << 20, 65, true},
		{17, 1000, 17000, 1, true},
		{64, 1000, 64000, 4, true},
		{64, 1 << 20, 64 << 20, 63 * 65, true},
		{64, 16321, 64 * 16321, 126, true},
		{64, 1 << 20, 1 << 20, 63 * 65, false}, // one long part
		{64, 1 << 20, 40 << 20, 63 * 65, true},
	} {
		require.Equal(t, c.want, inPairs(c.n, c.part, c.longest, payload), "%+v", c)
		require.Equal(t, c.legs, legCount(c.n, c.part, payload)*min(1, c.n-1), "%+v", c)
	}
}

// TestLegs: every byte of every step travels once, in turns that have room for it.
func TestLegs(t *testing.T) {
	for n := 1; n <= 17; n++ {
		for _, part := range []int{0, 1, 3, 10, 30, 31, 60, 100, 101} {
			const payload = 100
			seen, turns := map[[2]int]int{}, 0
			for l := range legs(n, part, payload) {
				turns++
				require.LessOrEqual(t, (l.steps-1)*part+l.hi-l.lo, payload)
				for s := l.first; s < l.first+l.steps; s++ {
					for i := l.lo; i < l.hi; i++ {
						seen[[2]int{s, i}]++
					}
				}
			}
			require.Len(t, seen, (n-1)*part, "%d members, %d bytes", n, part)
			for at, times := range seen {
				require.Equal(t, 1, times)
				require.True(t, at[0] > 0 && at[0] < n && at[1] < part)
			}
			if n > 1 {
				require.Equal(t, turns, legCount(n, part, payload))
			}
		}
	}
}
