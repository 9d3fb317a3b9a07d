package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

// TestSettle: a row of large transfers over a NIC is timed when what they cost has been measured, one over mapped memory at once.
func TestSettle(t *testing.T) {
	for _, c := range []pgastest.Config{{NIC: true}, {}} {
		pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
			loops := 0
			b := newBench(w, quick, new(bytes.Buffer))
			r := blockRow("put", 64<<10, 64, false)
			_, _, err := r.measure(ctx, b, &r)
			if err != nil || w.Rank() != 0 {
				return err
			}
			now, over := w.Team().Engine().Measuring()
			require.False(t, now)
			require.True(t, over)
			require.NoError(t, b.settle(64, 64<<10, func(int) error { loops++; return nil }))
			require.Equal(t, map[bool]int{true: settleSteps, false: 0}[c.NIC], loops)
			return nil
		})
	}
}
