package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

var program = pgastest.Program(run)

func TestHistogram(t *testing.T) {
	for _, how := range []string{"each", "local"} {
		args := func(bool) []string { return []string{"-bins", "21", "-values", "500", "-how", how} }
		program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
			out := pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("%d values in 21 bins by %d ranks, %s: ", 500*len(outs), len(outs), how))
			require.Contains(t, out, "verified: all bins exact")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "needed 1 to", "-bins", "0")
	program.Refuses(t, 1, "-how together", "-how", "together")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}

// TestCheck shows that a lost addition is found.
func TestCheck(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		hist, err := pgas.NewArray[int64](ctx, w.Team(), 10, pgas.Block())
		require.NoError(t, err)
		require.NoError(t, addLocal(ctx, hist, w.Rank(), 100))
		require.NoError(t, hist.Fence(ctx))
		require.NoError(t, check(ctx, hist, 2, 100))
		if w.Rank() == 1 {
			hist.Local()[0]--
		}
		require.ErrorContains(t, check(ctx, hist, 2, 100), "wrong: 1 of 10 bins")
		return nil
	})
}
