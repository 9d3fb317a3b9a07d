package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas/pgastest"
)

var program = pgastest.Program(run)

func TestCG(t *testing.T) {
	for _, side := range []int{1, 12} {
		args := func(bool) []string { return []string{"-side", fmt.Sprint(side)} }
		program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
			out := pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("%d unknowns, ", side*side))
			require.Contains(t, out, fmt.Sprintf(" steps by %d ranks: ", len(outs)))
			require.Contains(t, out, "verified: ")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "needed 1 to 4096 cells", "-side", "0")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}

// TestPlate looks up what the rows of parts of a plate name: the neighbours of each cell, and nothing else.
func TestPlate(t *testing.T) {
	const side = 5
	for _, part := range [][2]int{{0, 7}, {7, 7}, {7, 19}, {19, 25}} {
		lo, hi := part[0], part[1]
		m := plate(side, lo, hi)
		require.Len(t, m.rows, hi-lo)
		require.Len(t, m.v, hi-lo+len(m.list))
		for _, cell := range m.list {
			require.True(t, cell < lo || cell >= hi)
		}
		for i, places := range m.rows {
			named := map[int]bool{}
			for _, at := range places {
				if at < len(m.rows) {
					named[lo+at] = true
				} else {
					named[m.list[at-len(m.rows)]] = true
				}
			}
			want := map[int]bool{}
			for cell := range side * side {
				down, across := cell/side-(lo+i)/side, cell%side-(lo+i)%side
				if down*down+across*across == 1 {
					want[cell] = true
				}
			}
			require.Equal(t, want, named)
			require.Len(t, places, len(want))
		}
	}
}
