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

// TestPlate multiplies the parts of three ranks with a vector, against the plate itself.
func TestPlate(t *testing.T) {
	const side = 5
	v := func(row, col int) float64 {
		if row < 0 || row >= side || col < 0 || col >= side {
			return 0
		}
		return answer(row*side + col)
	}
	for _, part := range [][2]int{{0, 7}, {7, 7}, {7, 19}, {19, 25}} {
		m := plate(side, part[0], part[1])
		x, q := make([]float64, 0, m.n+len(m.list)), make([]float64, m.n)
		for cell := part[0]; cell < part[1]; cell++ {
			x = append(x, answer(cell))
		}
		for _, cell := range m.list {
			require.True(t, cell < part[0] || cell >= part[1])
			x = append(x, answer(cell))
		}
		m.times(q, x)
		for i, got := range q {
			row, col := (part[0]+i)/side, (part[0]+i)%side
			want := 4*v(row, col) - v(row-1, col) - v(row+1, col) - v(row, col-1) - v(row, col+1)
			require.InDelta(t, want, got, 1e-12)
		}
	}
}
