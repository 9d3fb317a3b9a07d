package algo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// play deals the elements of all members out as a sort does, and returns the buckets, each as runs with the places where they begin.
func play(t *testing.T, members [][]int) (buckets [][]int, begins [][]int) {
	p := len(members)
	counts, samples := make([]int, p), []sample[int]{}
	for m, s := range members {
		slices.Sort(s)
		counts[m] = len(s)
		for _, place := range samplePlaces(len(s), p) {
			samples = append(samples, sample[int]{s[place], m, place})
		}
	}
	by := splitters(samples, counts, p, cmp.Compare[int])
	require.LessOrEqual(t, len(by), p-1)
	buckets, begins = make([][]int, p), make([][]int, p)
	for m, s := range members {
		at := cuts(s, m, p, by, cmp.Compare[int])
		require.True(t, slices.IsSorted(at))
		require.Equal(t, []int{0, len(s)}, []int{at[0], at[p]})
		for b := range p {
			begins[b] = append(begins[b], len(buckets[b]))
			buckets[b] = append(buckets[b], s[at[b]:at[b+1]]...)
		}
	}
	for b := range p {
		begins[b] = append(begins[b], len(buckets[b]))
	}
	return buckets, begins
}

// TestBucketsAreBalanced: whatever the elements and whoever has them, buckets are in order, none is much larger than its share, and merging the runs gives
// all elements sorted (G1).
func TestBucketsAreBalanced(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for p := 1; p <= 9; p++ {
		for _, n := range []int{0, 1, p, 10 * p, 1000} {
			for _, values := range []int{1, 2, 10, 1 << 30} {
				for _, even := range []bool{true, false} {
					members, want := make([][]int, p), []int{}
					for i := range n {
						m := i % p
						if !even {
							m = min(rng.IntN(p), rng.IntN(p), rng.IntN(p))
						}
						v := rng.IntN(values)
						members[m], want = append(members[m], v), append(want, v)
					}
					slices.Sort(want)
					share, got := 3, []int{}
					if even {
						share = 2
					}
					buckets, begins := play(t, members)
					for b, bucket := range buckets {
						require.LessOrEqual(t, len(bucket), share*n/p+p+1, "%d elements of %d values, bucket %d of %d", n, values, b, p)
						got = append(got, merged(bucket, make([]int, len(bucket)), begins[b], cmp.Compare[int])...)
					}
					require.Equal(t, want, got)
				}
			}
		}
	}
}

func TestSamplePlaces(t *testing.T) {
	require.Empty(t, samplePlaces(0, 4))
	require.Equal(t, []int{0, 1, 2}, samplePlaces(3, 4))
	require.Equal(t, []int{0, 2, 5, 7}, samplePlaces(10, 4))
}

// TestMergedTakesTheEarlierFirst: of equal elements those of earlier runs come first.
func TestMergedTakesTheEarlierFirst(t *testing.T) {
	type card struct{ value, run int }
	runs := []card{{1, 0}, {3, 0}, {1, 1}, {2, 1}, {3, 2}, {0, 3}, {1, 3}}
	got := merged(slices.Clone(runs), make([]card, len(runs)), []int{0, 2, 4, 4, 5, 7}, func(x, y card) int { return cmp.Compare(x.value, y.value) })
	require.Equal(t, []card{{0, 3}, {1, 0}, {1, 1}, {1, 3}, {2, 1}, {3, 0}, {3, 2}}, got)
}
