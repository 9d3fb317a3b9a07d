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

// TestProduct compares the sum that can be written down with the sum itself.
func TestProduct(t *testing.T) {
	for i := range 5 {
		for j := range 5 {
			sum := 0
			for k := range 7 {
				sum += (i + k) * (k - j)
			}
			require.EqualValues(t, sum, product(7, i, j))
		}
	}
}
