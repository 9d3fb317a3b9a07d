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

func TestWords(t *testing.T) {
	program.InWorlds(t, func(bool) []string { return []string{"-words", "2000"} }, func(t *testing.T, _ bool, outs []string) {
		out := pgastest.OnlyRank0(t, outs)
		require.Contains(t, out, fmt.Sprintf("%d words counted by %d ranks: ", 2000*len(outs), len(outs)))
		require.Contains(t, out, "verified: all counts exact\n")
		require.Contains(t, out, " x word0\n")
	})
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "needed 0 to", "-words", "-1")
	program.Refuses(t, 2, `arguments ["x"]`, "x")
}

// TestCheck shows that a lost word is found.
func TestCheck(t *testing.T) {
	pgastest.Run(t, 1, func(ctx context.Context, w *pgas.World) error {
		require.ErrorContains(t, check(ctx, w, map[string]int{"word0": 1}, 100), "wrong: 1 words, most of [{word0 1}]")
		return nil
	})
}
