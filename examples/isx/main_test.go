package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

var program = pgastest.Program(run)

func TestIsx(t *testing.T) {
	for _, size := range [][]string{{"-keys", "3000", "-max", "1000"}, {"-keys", "1", "-max", "100"}, {"-keys", "500", "-max", "8"}} {
		program.InWorlds(t, func(bool) []string { return size }, func(t *testing.T, _ bool, outs []string) {
			ranks, out := len(outs), pgastest.OnlyRank0(t, outs)
			require.Contains(t, out, fmt.Sprintf("keys on %d ranks", ranks))
			require.Contains(t, out, "verified: sorted, and no key lost")
		})
	}
}

func TestWrongArguments(t *testing.T) {
	program.Refuses(t, 4, "a max from 4 (a value for each rank)", "-max", "3")
	program.Refuses(t, 1, "needed 1 to 268435456 keys", "-keys", "0")
	program.Refuses(t, 1, `arguments ["x"]`, "x")
}

// TestVerification shows that what can go wrong is found.
func TestVerification(t *testing.T) {
	for name, c := range map[string]struct {
		mine func(rank int) []uint32
		want string
	}{
		"right":         {func(r int) []uint32 { return []uint32{uint32(10 * r), uint32(10*r + 1)} }, ""},
		"not in order":  {func(r int) []uint32 { return []uint32{uint32(10*r + 1), uint32(10 * r)} }, "3 ranks out of order"},
		"key lost":      {func(r int) []uint32 { return []uint32{uint32(10 * r)} }, "6 keys became 3"},
		"key changed":   {func(r int) []uint32 { return []uint32{uint32(10*r + 1), uint32(10*r + 1)} }, "the sum of their squares"},
		"other buckets": {func(r int) []uint32 { r = (r + 1) % 3; return []uint32{uint32(10 * r), uint32(10*r + 1)} }, "3 ranks out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := pgastest.Errors(t, 3, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
				r := uint32(w.Rank())
				return verify(ctx, w, []uint32{10*r + 1, 10 * r}, c.mine(w.Rank()), 10*w.Rank(), 10)
			})
			said := 0
			for _, err := range errs {
				switch {
				case c.want == "":
					require.NoError(t, err)
				case !errors.Is(err, pgas.ErrPeerGone): // a rank may hear of another one's end before it has read the sum
					require.ErrorContains(t, err, c.want)
					said++
				}
			}
			require.Equal(t, c.want != "", said > 0)
		})
	}
}
