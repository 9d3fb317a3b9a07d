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

func TestGups(t *testing.T) {
	for _, mode := range []string{"-atomic=false", "-atomic=true"} {
		args := func(nic bool) []string {
			if nic {
				return []string{mode, "-bits", "8"}
			}
			return []string{mode, "-bits", "14"}
		}
		program.InWorlds(t, args, func(t *testing.T, _ bool, outs []string) {
			ranks, out := len(outs), pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("words by %d ranks", ranks))
			require.Contains(t, out, "verified: ")
			if mode == "-atomic=true" {
				require.Contains(t, out, "verified: 0 words wrong")
			}
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 3, "a word for each of 3 ranks", "-bits", "1")
	program.Refuses(t, 1, "needed 0 to 40 bits", "-bits", "41")
	program.Refuses(t, 1, "needed 0 to 40 bits", "-bits", "-1")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}

// TestSequence compares jumps into the sequence with steps through it.
func TestSequence(t *testing.T) {
	r := uint64(1)
	for i := range 1000 {
		require.Equal(t, r, number(i), "number %d", i)
		r = times2(r)
	}
	require.Equal(t, number(1<<40+5), multiply(number(1<<40), number(5)))
	require.EqualValues(t, 7, number(64), "x^64 is x^2 + x + 1")
}

// TestVerification shows that one round changes the table, that a second undoes it, and that what is lost shows.
func TestVerification(t *testing.T) {
	pgastest.Run(t, 3, func(ctx context.Context, w *pgas.World) error {
		table, err := pgas.NewArray[uint64](ctx, w.Team(), 256, pgas.Cyclic())
		if err != nil {
			return err
		}
		for i, word := range table.Mine() {
			*word = uint64(i)
		}
		require.NoError(t, table.Fence(ctx))
		require.NoError(t, update(ctx, w, table, nil, "test"))
		wrong, err := countWrong(ctx, w, table)
		require.NoError(t, err)
		require.Greater(t, wrong, 50) // the sequence begins with powers of two, which hit few places
		require.NoError(t, update(ctx, w, table, nil, "test"))
		wrong, err = countWrong(ctx, w, table)
		require.NoError(t, err)
		require.Zero(t, wrong)
		if w.Rank() == 1 {
			table.Local()[3] ^= number(9) // as if an update had been lost
		}
		wrong, err = countWrong(ctx, w, table)
		require.NoError(t, err)
		require.Equal(t, 1, wrong)
		return nil
	})
}
