package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas/pgastest"
)

var program = pgastest.Program(run)

func TestMatmul(t *testing.T) {
	for _, n := range []string{"8", "67"} {
		args := func(bool) []string { return []string{"-n", n} }
		program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
			grid := map[int]string{1: "1 x 1", 3: "1 x 3", 4: "2 x 2", 8: "2 x 4"}[len(outs)]
			out := pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("%s x %s by %s ranks: ", n, n, grid))
			require.Contains(t, out, "verified: all elements exact")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "needed 3 (a row for each rank)", "-n", "2")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}

// TestCheck compares the sum that can be written down with the product itself.
func TestCheck(t *testing.T) {
	g := &grid{n: 5, rows: 1, cols: 1, c: make([]float64, 25)}
	for i := range 5 {
		for j := range 5 {
			for k := range 5 {
				g.c[i*5+j] += float64((i + k) * (k - j))
			}
		}
	}
	require.Zero(t, g.worst())
	g.c[7]++
	require.EqualValues(t, 1, g.worst())
}
