package pgas

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLayoutsAgainstDealing compares the index mathematics with dealing the elements out one by one.
func TestLayoutsAgainstDealing(t *testing.T) {
	for _, l := range []Layout{Block(), Cyclic()} {
		for n := range 41 {
			for p := 1; p <= 9; p++ {
				d := newDist(l, n, p)
				parts := make([][]int, p)
				if l == Cyclic() {
					for i := range n {
						parts[i%p] = append(parts[i%p], i)
					}
				} else {
					next := 0
					for r := range p { // as even as can be, the larger ones first
						for range (n - next + p - r - 1) / (p - r) {
							parts[r] = append(parts[r], next)
							next++
						}
					}
				}
				total := 0
				for r, part := range parts {
					require.Equal(t, len(part), d.count(r), "%s %d/%d: count(%d)", l, n, p, r)
					require.LessOrEqual(t, d.count(r), d.count(0), "what is allocated for all is the first's")
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
				for lo := -2; lo <= n+2; lo++ {
					for k := -2; k <= n+2; k++ {
						require.Equal(t, lo >= 0 && k >= 0 && lo+k <= n, d.check(lo, k) == nil, "check(%d, %d) of %d", lo, k, n)
					}
				}
			}
		}
	}
	d := newDist(Block(), 10, 3)
	const most = int(^uint(0) >> 1)
	require.ErrorIs(t, d.check(most, most), ErrRange)
	require.ErrorIs(t, d.check(1, most), ErrRange)
	require.ErrorIs(t, d.check(-most, most), ErrRange)
}
