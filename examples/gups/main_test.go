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

func TestGups(t *testing.T) {
	for _, mode := range []string{"-atomic=false", "-atomic=true"} {
		args := func(nic bool) []string {
			if nic {
				return []string{mode, "-bits", "8"}
			}
			return []string{mode, "-bits", "14"}
		}
		inWorlds(t, args, func(t *testing.T, ranks int, out string) {
			require.Contains(t, out, fmt.Sprintf("words by %d ranks", ranks))
			require.Contains(t, out, "verified: ")
			if mode == "-atomic=true" {
				require.Contains(t, out, "verified: 0 words wrong")
			}
		})
	}
}

func TestWrongArguments(t *testing.T) {
	refuses(t, 3, "a word for each of 3 ranks", "-bits", "1")
	refuses(t, 1, "needed 0 to 40 bits", "-bits", "41")
	refuses(t, 1, "needed 0 to 40 bits", "-bits", "-1")
	refuses(t, 1, `arguments ["x"]`, "x")
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
