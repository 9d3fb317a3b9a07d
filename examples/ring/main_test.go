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

func TestRing(t *testing.T) {
	args := func(bool) []string { return []string{"-laps", "20"} }
	inWorlds(t, args, func(t *testing.T, ranks int, out string) {
		require.Contains(t, out, fmt.Sprintf("the token went round 20 times: %d hops", 20*ranks))
	})
}

func TestWrongArguments(t *testing.T) {
	refuses(t, 3, "-laps 0 and arguments []: needed from 1", "-laps", "0")
	refuses(t, 1, `arguments ["x"]`, "x")
	refuses(t, 1, "flag provided but not defined: -y", "-y")
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
