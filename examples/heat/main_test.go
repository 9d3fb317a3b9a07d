package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/window"
)

// inWorlds runs the program in worlds of several sizes, over mapped memory and over a NIC, and returns what rank 0 has
// printed to check.
func inWorlds(t *testing.T, args func(nic bool) []string, check func(t *testing.T, ranks int, out string)) {
	for _, ranks := range []int{1, 3, 4, 8} {
		for _, nic := range []bool{false, true} {
			t.Run(fmt.Sprintf("ranks=%d,nic=%v", ranks, nic), func(t *testing.T) {
				outs := make([]bytes.Buffer, ranks)
				pgastest.RunConfig(t, ranks, pgastest.Config{NIC: nic}, func(ctx context.Context, w *pgas.World) error {
					return run(ctx, w, args(nic), &outs[w.Rank()])
				})
				for r := 1; r < ranks; r++ {
					require.Empty(t, outs[r].String(), "only rank 0 reports")
				}
				check(t, ranks, outs[0].String())
			})
		}
	}
}

// refuses runs the program with wrong arguments: the ranks must say what is wrong. A rank may hear that another one has
// ended for that reason before it has come so far itself.
func refuses(t *testing.T, ranks int, sentence string, args ...string) {
	t.Helper()
	said := 0
	for _, err := range pgastest.Errors(t, ranks, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, args, new(bytes.Buffer))
	}) {
		if !errors.Is(err, pgas.ErrPeerGone) {
			require.ErrorContains(t, err, sentence)
			said++
		}
	}
	require.Positive(t, said)
}

func TestHeat(t *testing.T) {
	for _, size := range [][]string{{"-rows", "16", "-cols", "12", "-steps", "30"}, {"-rows", "11", "-cols", "3", "-steps", "7"}} {
		inWorlds(t, func(bool) []string { return size }, func(t *testing.T, ranks int, out string) {
			require.Contains(t, out, fmt.Sprintf("%s x %s cells, %s steps on %d ranks", size[1], size[3], size[5], ranks))
			require.Contains(t, out, "verified")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	refuses(t, 4, "needed 4 rows or more (one for each rank)", "-rows", "3")
	refuses(t, 1, "3 columns or more", "-cols", "2")
	refuses(t, 1, "at most 1048576 of both", "-cols", "2000000")
	refuses(t, 1, "0 steps or more", "-steps", "-1")
	refuses(t, 1, `arguments ["x"]`, "x")
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
