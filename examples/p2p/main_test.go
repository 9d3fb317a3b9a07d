package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas/pgastest"
)

var program = pgastest.Program(run)

func TestPipeline(t *testing.T) {
	args := func(bool) []string { return []string{"-cols", "37", "-rows", "23", "-rounds", "3"} }
	program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
		out := pgastest.OnlyRank0(t, outs)
		require.Contains(t, out, fmt.Sprintf("23 x 37 cells, 3 rounds by %d ranks: ", len(outs)))
		require.Contains(t, out, fmt.Sprintf("verified: the last cell is %d", 4*(37+23-2)))
	})
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "needed 3 columns or more", "-cols", "2")
	program.Refuses(t, 1, "2 rows or more", "-rows", "1")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}
