package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas/pgastest"
)

var program = pgastest.Program(run)

func TestHello(t *testing.T) {
	args := func(bool) []string { return nil }
	program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
		ranks := len(outs)
		for r, out := range outs {
			require.Regexp(t, fmt.Sprintf(`^rank %d of %d on node \d+ \(.*\), reaches rank %d over \w+\n`, r, ranks, (r+1)%ranks), out)
		}
		require.Contains(t, outs[0], fmt.Sprintf("all %d ranks are on the roll\n", ranks))
	})
}

func TestArguments(t *testing.T) {
	program.Refuses(t, 3, `hello takes no arguments, but was given ["world"]`, "world")
}

// TestCheck shows that a missing entry, and one on a wrong line, is found.
func TestCheck(t *testing.T) {
	require.NoError(t, check([]int64{1, 2, 3}))
	require.EqualError(t, check([]int64{1, 0, 3}), "the roll has 0 on the line of rank 1: wanted 2")
	require.Error(t, check([]int64{1, 3, 2}))
}
