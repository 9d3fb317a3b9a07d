package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/proto"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport/transporttest"
)

// TestTargets: every way is measured in every cell, leases among them, and the bytes are compared at the target.
func TestTargets(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 16 << 20}}
	pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
		all, err := newBench(w, settings{reps: 1}, io.Discard).targets(ctx, 32<<20, 256<<10)
		if err != nil || w.Rank() != 0 {
			return err
		}
		require.Len(t, all, 2*2*2*5)
		for _, cell := range all {
			require.Len(t, cell.took, len(targetWays))
			for _, took := range cell.took {
				require.NotEmpty(t, took, "%+v", cell)
			}
			_, best, ratio, word := cell.verdict()
			require.Positive(t, ratio)
			require.NotEmpty(t, word)
			require.NotContains(t, []int{0, len(targetWays) - 1}, best, "what is chosen is no fixed way")
		}
		require.Positive(t, w.Team().Engine().Stats()[proto.PathLease].Ops)
		var text bytes.Buffer
		require.NoError(t, writeTargets(&text, "loopback", all))
		require.Contains(t, text.String(), "auto holds or ties in")
		require.Len(t, regexp.MustCompile(`(holds|tie|loses) +\S+ \[\S+–\S+\] +\S+ \[\S+–\S+\]`).FindAllString(text.String(), -1), len(all), "intervals of each cell")
		return nil
	})
}

// TestTargetsOfASmallWindow: the least window has two places, and what has no cell, or one place, is refused.
func TestTargetsOfASmallWindow(t *testing.T) {
	c := pgastest.Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 2 << 20}}
	for span := 1 << 20; span <= 2<<20; span *= 2 { // the former as a test only
		pgastest.RunConfig(t, 2, c, func(ctx context.Context, w *pgas.World) error {
			all, err := newBench(w, settings{reps: 1}, io.Discard).targets(ctx, span, 512)
			if err == nil && w.Rank() == 0 {
				require.Len(t, all, 2*2*2*2)
			}
			return err
		})
	}
	for want, args := range map[string][]string{
		"--span 1048576: want at least 2097152": {"--span", "1048576"},
		"--max 0: want at least 64":             {"--max", "0"},
		`--max "-1": want a number of bytes`:    {"--max=-1"},
		"--reps 0":                              {"--reps", "0"},
	} {
		require.ErrorContains(t, app(io.Discard).Run(append([]string{"pgasbench", "targets"}, args...)), want)
	}
}

// TestTargetsWantBuckets: where the target is registered as a whole nothing is measured, and the error says what to do.
func TestTargetsWantBuckets(t *testing.T) {
	for _, err := range pgastest.Errors(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		_, err := newBench(w, settings{reps: 1}, io.Discard).targets(ctx, 1<<20, 64)
		return err
	}) {
		require.Error(t, err)
	}
}

// TestTargetVerdicts works the rules by hand: the ways are auto, bounce, direct, pipe, lease and auto again.
func TestTargetVerdicts(t *testing.T) {
	for want, us := range map[string][6]float64{
		"holds": {10.4, 12, 10, 30, 40, 11},
		"tie":   {12, 15, 10, 30, 40, 10.3},
		"loses": {13, 15, 10, 30, 9, 12.5}, // so small a transfer takes no lease
	} {
		c := targetCell{bytes: 4096}
		for _, v := range us {
			c.took = append(c.took, []float64{v})
		}
		_, best, ratio, word := c.verdict()
		require.Equal(t, want, word)
		require.Equal(t, 2, best)
		require.InDelta(t, us[0]/10, ratio, 1e-9)
	}
}
