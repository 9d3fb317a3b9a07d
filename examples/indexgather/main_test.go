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

func TestIndexGather(t *testing.T) {
	for _, how := range []string{"one", "gather"} {
		args := func(bool) []string { return []string{"-table", "100", "-reads", "1500", "-how", how} }
		program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
			out := pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("%d reads from 100 elements by %d ranks, %s: ", 1500*len(outs), len(outs), how))
			require.Contains(t, out, "verified: all as written")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "needed 1 to", "-table", "0")
	program.Refuses(t, 1, "-how two", "-how", "two")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}

// TestCheck shows that an element that is not as written is found.
func TestCheck(t *testing.T) {
	pgastest.Run(t, 2, func(ctx context.Context, w *pgas.World) error {
		table, err := pgas.NewArray[uint64](ctx, w.Team(), 4, pgas.Cyclic())
		require.NoError(t, err)
		for i, v := range table.Mine() {
			*v = valueAt(i)
		}
		if w.Rank() == 1 {
			table.Local()[0]++
		}
		require.NoError(t, table.Fence(ctx))
		for _, gather := range []bool{false, true} {
			wrong, err := read(ctx, table, w.Rank(), 400, gather)
			require.NoError(t, err)
			require.Greater(t, wrong, int64(50))
			require.Less(t, wrong, int64(200))
		}
		return nil
	})
}
