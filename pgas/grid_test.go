package pgas

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGridsThatAreChosen(t *testing.T) {
	for _, c := range []struct {
		rows, cols, p int
		given, want   [2]int
	}{
		{100, 100, 1, [2]int{}, [2]int{1, 1}},
		{100, 100, 4, [2]int{}, [2]int{2, 2}},
		{100, 100, 7, [2]int{}, [2]int{1, 7}},
		{100, 100, 12, [2]int{}, [2]int{3, 4}},
		{1000, 10, 4, [2]int{}, [2]int{4, 1}},
		{10, 1000, 4, [2]int{}, [2]int{1, 4}},
		{0, 0, 6, [2]int{}, [2]int{1, 6}},
		{10, 10, 6, [2]int{6, 0}, [2]int{6, 1}},
		{10, 10, 6, [2]int{0, 3}, [2]int{2, 3}},
		{10, 10, 6, [2]int{3, 2}, [2]int{3, 2}},
	} {
		g, err := Grid{Rows: c.given[0], Cols: c.given[1]}.fit(c.rows, c.cols, c.p)
		require.NoError(t, err)
		require.Equal(t, c.want, [2]int{g.Rows, g.Cols}, "%+v", c)
	}
	for _, bad := range []Grid{
		{Rows: 4}, {Cols: 7}, {Rows: 2, Cols: 2}, {Rows: -1, Cols: -6}, {Rows: -2}, {Cols: -2}, {Rows: 1 << 62, Cols: 6}, {Rows: 12}, {Ghost: -1},
	} {
		_, err := bad.fit(10, 10, 6)
		require.Error(t, err, "%+v", bad)
	}
	_, err := Grid{Rows: 3, Cols: (1<<64 + 5) / 3}.fit(10, 10, 5) // 3 times that is 5 in 64 bits
	require.ErrorIs(t, err, ErrConfig)
	for _, n := range []int{-1, 1 << 40} {
		_, err := Grid{}.fit(n, 1, 1)
		require.ErrorIs(t, err, ErrRange)
		_, err = Grid{}.fit(1, n, 1)
		require.ErrorIs(t, err, ErrRange)
	}
}

// TestSpansAgainstOwners compares the spans of every line with the owner of each of its elements.
func TestSpansAgainstOwners(t *testing.T) {
	for n := range 14 {
		for p := 1; p <= 5; p++ {
			d := newDist(Block(), n, p)
			for lo := range n {
				for step := 1; step <= n; step++ {
					for count := 0; count == 0 || lo+(count-1)*step < n; count++ {
						next, last := 0, -1
						l := line{lo, count, step}
						for s := d.span(l, 0); s.n > 0; s = d.next(l, s) {
							require.Equal(t, next, s.at)
							require.Positive(t, s.n)
							require.Greater(t, s.rank, last, "one span for each owner")
							last = s.rank
							for k := range s.n {
								rank, disp := d.owner(lo + (s.at+k)*step)
								require.Equal(t, [2]int{rank, disp}, [2]int{s.rank, s.disp + k*step})
							}
							next += s.n
						}
						require.Equal(t, count, next)
					}
				}
			}
		}
	}
}

// TestWrapAgainstRemainders compares the ranges with every index's own remainder.
func TestWrapAgainstRemainders(t *testing.T) {
	for size := range 6 {
		for lo := -9; lo < 10; lo++ {
			for n := range 12 {
				for _, periodic := range []bool{false, true} {
					want := map[int]int{}
					for k := range n {
						switch i := lo + k; {
						case i >= 0 && i < size:
							want[k] = i
						case periodic && size > 0:
							want[k] = (i + 100*size) % size
						}
					}
					have := map[int]int{}
					for at, r := range wrap(lo, n, size, periodic) {
						require.Less(t, r[0], r[1])
						for k := range r[1] - r[0] {
							have[at+k] = r[0] + k
						}
					}
					require.Equal(t, want, have, "%d from %d on, size %d", n, lo, size)
				}
			}
		}
	}
}

// TestFrames: the strips cover the frame, every cell once, and nothing of the block.
func TestFrames(t *testing.T) {
	for rows := 1; rows < 4; rows++ {
		for cols := 1; cols < 4; cols++ {
			for g := range 4 {
				seen := map[[2]int]int{}
				for _, s := range frame(rows, cols, g) {
					for i := range s.Rows {
						for j := range s.Cols {
							seen[[2]int{s.Row + i, s.Col + j}]++
						}
					}
				}
				for i := -g; i < rows+g; i++ {
					for j := -g; j < cols+g; j++ {
						inside := i >= 0 && i < rows && j >= 0 && j < cols
						require.Equal(t, !inside, seen[[2]int{i, j}] == 1)
					}
				}
				require.Len(t, seen, (rows+2*g)*(cols+2*g)-rows*cols)
			}
		}
	}
}

func TestAreas(t *testing.T) {
	const most = int(^uint(0) >> 1)
	rng := rand.New(rand.NewPCG(2, 2))
	pick := func() int {
		return []int{-most - 1, -2, -1, 0, 1, 2, 3, 5, 6, 7, most - 1, most}[rng.IntN(12)]
	}
	for range 20_000 {
		a := Area{pick(), pick(), pick(), pick(), pick(), pick()}
		got, err := a.within(6, 5)
		exists := func(lo, n, step, size int) bool {
			if step == 0 {
				step = 1
			}
			if lo < 0 || lo > size || n < 0 || n > size || step < 0 {
				return false
			}
			for range n {
				if lo < 0 || lo >= size {
					return false
				}
				lo += min(step, 100)
			}
			return true
		}
		require.Equal(t, exists(a.Row, a.Rows, a.RowStep, 6) && exists(a.Col, a.Cols, a.ColStep, 5), err == nil, "%+v", a)
		if err == nil {
			require.Positive(t, got.RowStep)
			require.Positive(t, got.ColStep)
		}
	}
}
