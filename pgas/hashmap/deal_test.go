package hashmap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeal: each key is handed out once with its value, and the first ones, however many, are from everywhere.
func TestDeal(t *testing.T) {
	for n := range 200 {
		keys, vs := make([]uint64, n), make([]int64, n)
		for i := range keys {
			keys[i], vs[i] = uint64(i), int64(-i)
		}
		d, seen := newDeal(keys, vs), make([]bool, n)
		for first := 1; d.left > 0; first++ {
			some, theirs := make([]uint64, min(first, d.left)), make([]int64, min(first, d.left))
			d.take(some, theirs)
			for i, k := range some {
				require.False(t, seen[k], "%d of %d", k, n)
				seen[k] = true
				require.EqualValues(t, k, -theirs[i])
			}
		}
		require.NotContains(t, seen, false)
		require.Zero(t, d.at, "all around")
	}
	const n = 10_000
	d := newDeal(make([]uint64, n), make([]int64, n))
	const parts, some = 10, 500
	var of [parts]int
	for range some {
		of[d.at*parts/n]++
		d.take(make([]uint64, 1), make([]int64, 1))
	}
	for _, k := range of {
		require.InDelta(t, some/parts, k, 3)
	}
}
