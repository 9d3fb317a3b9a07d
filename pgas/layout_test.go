package pgas

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// deal gives the elements out one by one, as the layout's documentation says.
func deal(l Layout, n, p int) [][]int {
	parts := make([][]int, p)
	give := func(rank, next, count int) int {
		for range count {
			parts[rank] = append(parts[rank], next)
			next++
		}
		return next
	}
	next := 0
	switch l.kind {
	case block: // as even as can be, the larger ones first
		for r := range p {
			next = give(r, next, (n-next+p-r-1)/(p-r))
		}
	case cyclic:
		for next < n {
			next = give(next%p, next, 1)
		}
	case blockCyclic:
		for r := 0; next < n; r++ {
			next = give(r%p, next, min(l.length, n-next))
		}
	case irregular:
		for r, c := range *l.counts {
			next = give(r, next, c)
		}
	}
	return parts
}

// ranges makes counts for p ranks of n elements, some of them 0.
func ranges(rng *rand.Rand, n, p int) []int {
	counts := make([]int, p)
	for range n {
		counts[rng.IntN(p)*rng.IntN(2)]++
	}
	rng.Shuffle(p, func(i, j int) { counts[i], counts[j] = counts[j], counts[i] })
	return counts
}

// TestLayoutsAgainstDealing compares the index mathematics with dealing the elements out one by one.
func TestLayoutsAgainstDealing(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for n := range 32 {
		for p := 1; p <= 7; p++ {
			for _, l := range []Layout{
				Block(), Cyclic(), BlockCyclic(1), BlockCyclic(2), BlockCyclic(3), BlockCyclic(7), BlockCyclic(40),
				Irregular(ranges(rng, n, p)...),
			} {
				require.NoError(t, l.check(n, p))
				d := newDist(l, n, p)
				parts := deal(l, n, p)
				total := 0
				for r, part := range parts {
					require.Equal(t, len(part), d.count(r), "%s %d/%d: count(%d)", l, n, p, r)
					require.LessOrEqual(t, d.count(r), d.most())
					if len(part) > 0 {
						require.Equal(t, part[0], d.first(r))
					}
					for disp, i := range part {
						gotRank, gotDisp := d.owner(i)
						require.Equal(t, [2]int{r, disp}, [2]int{gotRank, gotDisp}, "%s %d/%d: owner(%d)", l, n, p, i)
						require.Equal(t, i, d.index(r, disp))
						run := 1
						for disp+run < len(part) && part[disp+run] == i+run {
							run++
						}
						require.Equal(t, run, d.run(i), "%s %d/%d: run(%d)", l, n, p, i)
					}
					total += len(part)
				}
				require.Equal(t, n, total)
			}
		}
	}
	for n := range 12 {
		d := newDist(Block(), n, 3)
		for lo := -2; lo <= n+2; lo++ {
			for k := -2; k <= n+2; k++ {
				require.Equal(t, lo >= 0 && k >= 0 && lo+k <= n, d.check(lo, k) == nil, "check(%d, %d) of %d", lo, k, n)
			}
		}
	}
	d := newDist(Block(), 10, 3)
	const most = int(^uint(0) >> 1)
	require.ErrorIs(t, d.check(most, most), ErrRange)
	require.ErrorIs(t, d.check(1, most), ErrRange)
	require.ErrorIs(t, d.check(-most, most), ErrRange)
}

// TestPiecesAgainstOwners compares the pieces of every range with the owner of each of its elements.
func TestPiecesAgainstOwners(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for n := range 26 {
		for p := 1; p <= 5; p++ {
			for _, l := range []Layout{Block(), Cyclic(), BlockCyclic(2), BlockCyclic(3), BlockCyclic(40), Irregular(ranges(rng, n, p)...)} {
				d := newDist(l, n, p)
				for lo := range n + 1 {
					for k := range n - lo + 1 {
						pieces, seen := 0, make([]bool, k)
						for _, x := range d.pieces(lo, k, nil) {
							pieces++
							for row := range x.Rows {
								for col := range x.Cols {
									near := x.Near + row*x.NearStride + col*x.NearStep
									require.False(t, seen[near], "%s: element %d twice", l, lo+near)
									seen[near] = true
									rank, disp := d.owner(lo + near)
									require.Equal(t, [2]int{rank, disp}, [2]int{x.Target, x.Disp + row*x.Stride + col*x.Step}, "%s: element %d", l, lo+near)
								}
							}
						}
						require.NotContains(t, seen, false, "%s: [%d, %d)", l, lo, lo+k)
						require.LessOrEqual(t, pieces, p+2)
					}
				}
			}
		}
	}
}

func TestLayoutsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		l    Layout
		n, p int
	}{
		{Block(), -1, 2},
		{BlockCyclic(0), 5, 2},
		{BlockCyclic(-1), 5, 2},
		{BlockCyclic(1 << 60), 5, 2},
		{Irregular(), 0, 1},
		{Irregular(1, 2), 3, 3},
		{Irregular(1, 2), 4, 2},
		{Irregular(2, 2), 3, 2},
		{Irregular(-1, 4), 3, 2},
		{Irregular(1<<62, 1<<62, 1<<62), 3, 3},
	} {
		require.ErrorIs(t, c.l.check(c.n, c.p), ErrRange, "%s: %d over %d", c.l, c.n, c.p)
	}
	require.Equal(t, Block(), Block())
	require.NotEqual(t, BlockCyclic(2), BlockCyclic(3))
	require.Contains(t, Irregular(make([]int, 100)...).String(), "100 ranges")
	a, b := newDist(Irregular(1, 2), 3, 2), newDist(Irregular(2, 1), 3, 2)
	require.True(t, a.same(newDist(Irregular(1, 2), 3, 2)))
	require.False(t, a.same(b))
	require.False(t, newDist(Block(), 4, 2).same(newDist(Cyclic(), 4, 2)))
	require.NotEqual(t, a.String(), b.String(), "members that disagree must notice")
}
