package coll

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChoices is a golden table of methods of prefixes.
func TestChoices(t *testing.T) {
	for _, c := range []struct {
		n, bytes, slot int
		want           method
	}{
		{1, 1 << 20, 512, direct},
		{2, 1 << 20, 512, direct},
		{3, 8<<10 - 1, 512, direct},
		{3, 8 << 10, 512, segmented},
		{8, 8, 512, direct},
		{9, 8, 512, gathered},
		{9, 512, 512, gathered},
		{9, 513, 512, segmented},
		{1000, 32, 32, gathered},
		{1000, 40, 32, segmented},
	} {
		require.Equal(t, c.want, choose(c.n, c.bytes, c.slot), "%+v", c)
	}
}

func TestCounts(t *testing.T) {
	require.Equal(t, []int{0, 6, 6, 15}, begins([]int{2, 0, 3}, 3))
	for _, c := range [][6]int{{0, 10, 5, 20, 5, 10}, {0, 10, 10, 20, 10, 10}, {10, 20, 0, 5, 10, 10}, {4, 8, 0, 100, 4, 8}} {
		begin, end := overlap(c[0], c[1], c[2], c[3])
		require.Equal(t, c[4:], []int{begin, end})
	}
}
