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

func TestRing(t *testing.T) {
	args := func(bool) []string { return []string{"-laps", "20"} }
	program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
		ranks, out := len(outs), pgastest.OnlyRank0(t, outs)
		require.Contains(t, out, fmt.Sprintf("the token went round 20 times: %d hops", 20*ranks))
	})
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "-laps 0 and arguments []: needed from 1", "-laps", "0")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
	program.Refuses(t, 1, "flag provided but not defined: -y", "-y")
}

// TestCheck shows that a token that missed a rank is found.
func TestCheck(t *testing.T) {
	pgastest.Run(t, 3, func(_ context.Context, w *pgas.World) error {
		want := []int64{6 + 6, 6 + 1, 6 + 1 + 2}[w.Rank()] // in the second lap
		require.NoError(t, check(want, w, 2))
		require.ErrorContains(t, check(want-1, w, 2), fmt.Sprintf("the token is %d, wanted %d", want-1, want))
		return nil
	})
}
