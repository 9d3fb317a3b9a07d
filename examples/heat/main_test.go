package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

var program = pgastest.Program(run)

func TestHeat(t *testing.T) {
	for _, size := range [][]string{{"-rows", "16", "-cols", "12", "-steps", "30"}, {"-rows", "11", "-cols", "3", "-steps", "7"}} {
		program.InWorlds(t, func(bool) []string { return size }, func(t *testing.T, _ bool, outs []string) {
			ranks, out := len(outs), pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("%s x %s cells, %s steps on %d ranks", size[1], size[3], size[5], ranks))
			require.Contains(t, out, "verified")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 4, "needed 4 rows or more (one for each rank)", "-rows", "3")
	program.Refuses(t, 1, "3 columns or more", "-cols", "2")
	program.Refuses(t, 1, "at most 1048576 of both", "-cols", "2000000")
	program.Refuses(t, 1, "0 steps or more", "-steps", "-1")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}

// TestVerification shows that one wrong cell is found, and that a missing step is.
func TestVerification(t *testing.T) {
	pgastest.Run(t, 3, func(ctx context.Context, w *pgas.World) error {
		grid, err := window.Allocate[float64](ctx, w.Team(), 5*8)
		if err != nil {
			return err
		}
		p := &tube{rows: 8, cols: 8, rank: w.Rank(), ranks: w.Size(), grids: [2]*window.Window[float64]{grid, grid}}
		p.each(func(at, row, col int) { grid.Local()[at] = p.exact(row, col, 0) })
		require.Zero(t, p.worst())
		p.steps = 1
		require.Greater(t, p.worst(), 1e-2)
		p.steps = 0
		grid.Local()[8+3] += 1e-9
		require.Greater(t, p.worst(), 1e-10)
		return nil
	})
}
