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

func TestHello(t *testing.T) {
	for _, ranks := range []int{1, 3, 4, 8} {
		for _, nic := range []bool{false, true} {
			t.Run(fmt.Sprintf("ranks=%d,nic=%v", ranks, nic), func(t *testing.T) {
				outs := make([]bytes.Buffer, ranks)
				pgastest.RunConfig(t, ranks, pgastest.Config{NIC: nic}, func(ctx context.Context, w *pgas.World) error {
					return run(ctx, w, nil, &outs[w.Rank()])
				})
				for r := range outs {
					require.Regexp(t, fmt.Sprintf(`^rank %d of %d on node \d+ \(.*\), reaches rank %d over \w+\n`, r, ranks, (r+1)%ranks), outs[r].String())
				}
				require.Contains(t, outs[0].String(), fmt.Sprintf("all %d ranks are on the roll\n", ranks))
			})
		}
	}
}

func TestArguments(t *testing.T) {
	errs := pgastest.Errors(t, 3, pgastest.Config{}, func(ctx context.Context, w *pgas.World) error {
		return run(ctx, w, []string{"world"}, new(bytes.Buffer))
	})
	said := 0
	for _, err := range errs {
		if !errors.Is(err, pgas.ErrPeerGone) { // a rank may hear of another one's end before it has come so far itself
			require.EqualError(t, err, `hello takes no arguments, but was given ["world"]`)
			said++
		}
	}
	require.Positive(t, said)
}

// TestCheck shows that a missing entry, and one on a wrong line, is found.
func TestCheck(t *testing.T) {
	require.NoError(t, check([]int64{1, 2, 3}))
	require.EqualError(t, check([]int64{1, 0, 3}), "the roll has 0 on the line of rank 1: wanted 2")
	require.Error(t, check([]int64{1, 3, 2}))
}
