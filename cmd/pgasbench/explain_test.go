package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/selector"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
)

// TestExplain: every candidate is measured, carries its bytes, and travels as it says; one is chosen of those for a first use.
func TestExplain(t *testing.T) {
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		b := newBench(w, quick, io.Discard)
		all, err := b.explain(ctx, 1<<18)
		if err != nil || w.Rank() != 0 {
			return err
		}
		require.True(t, w.Team().Engine().Measured(), "with the other rank")
		type size struct {
			get   bool
			bytes int
		}
		chosen, seen := map[size]int{}, map[selector.Protocol]bool{}
		for _, x := range all {
			require.Positive(t, x.estimated, "%+v", x)
			require.Positive(t, x.measured, "%+v", x)
			require.Positive(t, x.again, "%+v", x)
			require.Positive(t, x.n, "%+v", x)
			seen[x.protocol] = true
			n := chosen[size{x.get, x.bytes}]
			if x.chosen && x.protocol != selector.Direct {
				n++
			}
			chosen[size{x.get, x.bytes}] = n
		}
		for s, n := range chosen {
			require.Equal(t, 1, n, "%+v", s)
		}
		for _, p := range []selector.Protocol{selector.Inline, selector.Bounce, selector.Direct, selector.Register, selector.Pipe, selector.Hybrid} {
			require.True(t, seen[p], "%v", p)
		}
		stats := w.Stats()["loopback"]
		require.Positive(t, stats["superpipe"].Ops)
		require.Positive(t, stats["zero-copy"].Ops)
		var text bytes.Buffer
		require.NoError(t, writeExplained(&text, "loopback", all))
		require.Contains(t, text.String(), "estimates are within 25 % of the median")
		return nil
	})
}

// TestExplainMeasuresEach: a candidate for which no time is left, since another program had the cores, is measured in one round all the same.
func TestExplainMeasuresEach(t *testing.T) {
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		all, err := newBench(w, settings{reps: 1, target: 0}, io.Discard).explain(ctx, explainLeast)
		require.Equal(t, w.Rank() == 0, len(all) > 0)
		for _, x := range all {
			require.Positive(t, x.n, "%+v", x)
			require.Positive(t, x.measured, "%+v", x)
		}
		return err
	})
}

// TestExplainRefusesBuckets: where the target is registered as it is used nothing is measured, and the error says what to do.
func TestExplainRefusesBuckets(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 6 << 20}}
	errs := pgastest.Errors(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		_, err := newBench(w, settings{reps: 1}, io.Discard).explain(ctx, 16<<20)
		return err
	})
	require.ErrorContains(t, errs[0], "PGAS_MAX_PINNED")
	require.Error(t, errs[1])
}
