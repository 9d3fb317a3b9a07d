package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/grid"
	"gopgas/pgas/pgastest"
)

var program = pgastest.Program(run)

func TestStencil3D(t *testing.T) {
	for _, size := range [][]string{{"-edge", "12", "-steps", "20"}, {"-edge", "3", "-steps", "5"}} {
		program.InWorlds(t, func(bool) []string { return size }, func(t *testing.T, _ bool, outs []string) {
			out := pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("%s x %s x %s cells in", size[1], size[1], size[1]))
			require.Contains(t, out, fmt.Sprintf("%s steps on %d ranks", size[3], len(outs)))
			require.Contains(t, out, "verified")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 4, "an edge from 3 to 4096 cells", "-edge", "2")
	program.Refuses(t, 1, "an edge from 3 to 4096 cells", "-edge", "5000")
	program.Refuses(t, 1, "0 steps or more", "-steps", "-1")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}

// TestStep: a step is exact everywhere, at the edges of blocks too, and changes all but the cold faces.
func TestStep(t *testing.T) {
	pgastest.Run(t, 4, func(ctx context.Context, w *pgas.World) error {
		b := block{edge: 8}
		var cells [2]*grid.Array[float64]
		for i := range cells {
			a, err := grid.New[float64](ctx, w.Team(), []int{8, 8, 8}, grid.Config{Ghost: []int{1, 1, 1}})
			if err != nil {
				return err
			}
			cells[i] = a
		}
		for at, x := range cells[0].Mine() {
			*x = b.exact(at, 0)
		}
		if err := b.step(ctx, cells[0], cells[1]); err != nil {
			return err
		}
		for at, x := range cells[1].Mine() {
			require.InDelta(t, b.exact(at, 1), *x, 1e-14, "%v", at)
			require.NotEqual(t, b.exact(at, 0) != 0, *x == b.exact(at, 0), "%v", at)
		}
		return nil
	})
}
