package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/pgas"
	"gopgas/pgas/pgastest"
)

func familyOut(t *testing.T, args string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := app(&out).Run(append([]string{"pgasbench"}, strings.Fields(args)...))
	return out.String(), err
}

// figureRows makes a figure and returns its rows.
func figureRows(t *testing.T, args string) []map[string]any {
	t.Helper()
	command, rest, _ := strings.Cut(args, " ")
	text, err := familyOut(t, command+" --json "+rest)
	require.NoError(t, err)
	var doc struct {
		Machine, Date, Load, Kind string
		Notes                     []string
		Rows                      []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	for _, v := range []string{doc.Machine, doc.Date, doc.Load, doc.Kind} {
		require.NotEmpty(t, v)
	}
	require.NotEmpty(t, doc.Notes)
	require.NotEmpty(t, doc.Rows)
	return doc.Rows
}

// TestFiguresOfProtocols makes every measured figure once, small; with -short some of each command, and under the race detector fewer still: each of the rest's
// worlds measures what transfers cost, for many seconds there. What it measures is not looked at, but for what is counted.
func TestFiguresOfProtocols(t *testing.T) {
	brief := []string{"search", "soft"}
	if !raceEnabled {
		brief = append(brief, "ping")
	}
	for args, rows := range map[string]int{
		"eager --bytes 4096 --iterations 3 ping":     2,
		"eager --bytes 4096 --iterations 6 spectrum": 2,
		"eager --max 64 search":                      1,
		"bulk --max 4096 soft":                       9,
		"bulk --bytes 8192 --iterations 2 isx":       16,
		"select --bytes 4096 --iterations 8":         18,
		"eager --bytes 2048 --iterations 200 adapt":  9,
	} {
		if testing.Short() && !slices.ContainsFunc(brief, func(word string) bool { return strings.Contains(args, word) }) {
			continue
		}
		t.Run(args, func(t *testing.T) {
			all := figureRows(t, args)
			require.Len(t, all, rows)
			if !strings.Contains(args, "search") { // what it compares needs no pairs
				requireIntervals(t, all)
			}
		})
	}
}

// requireIntervals wants in every row what was compared by turns with the ends of its interval.
func requireIntervals(t *testing.T, rows []map[string]any) {
	t.Helper()
	for _, r := range rows {
		found := 0
		for name, v := range r {
			if name, ok := strings.CutSuffix(name, "_paired"); ok {
				found++
				require.LessOrEqual(t, r[name+"_low"], v, name)
				require.GreaterOrEqual(t, r[name+"_high"], v, name)
			}
		}
		require.Positive(t, found)
	}
}

// TestPingCounts: every operation of bounce goes through the slots, and every one of bypass past them.
func TestPingCounts(t *testing.T) {
	for _, r := range figureRows(t, "eager --bytes 1024 --iterations 2 ping") {
		require.EqualValues(t, 41*2, r["bounced"])
		require.EqualValues(t, 41*2, r["bypassed"])
	}
}

// TestSuperpipelineInVirtualTime: shape and stated points of the paper's figures, with its constants.
func TestSuperpipelineInVirtualTime(t *testing.T) {
	share := map[string]map[float64]float64{}
	for _, r := range figureRows(t, "bulk --max 262144 sim") {
		key := r["figure"].(string) + " " + r["way"].(string)
		if share[key] == nil {
			share[key] = map[float64]float64{}
		}
		share[key][r["bytes"].(float64)] = r["percent_of_raw"].(float64)
	}
	fly, naive, flat := share["2 and 6 register on the fly"], share["2 and 6 naive copy"], share["2 and 6 flat pipeline, C_opt"]
	super, hard := share["2 and 6 superpipeline, planned"], share["2 and 6 superpipeline, 12 KB and 1.5"]
	require.InDelta(t, 40, fly[64<<10], 10, "the paper loses 60 % near 64 KB")
	require.Greater(t, naive[8<<10], flat[8<<10], "below 16 KB the naive copy is ahead")
	require.Less(t, naive[32<<10], flat[32<<10])
	for n := 128 << 10; n <= 256<<10; n *= 2 {
		for _, s := range []map[float64]float64{super, hard} {
			require.Greater(t, s[float64(n)], 93.0, n)
			require.Greater(t, s[float64(n)], naive[float64(n)], n)
			require.Greater(t, s[float64(n)], fly[float64(n)], n)
		}
	}
	first, best := share["7 registration cache, first"], share["7 registration cache, best"]
	require.Greater(t, best[64<<10], 2*first[64<<10])
	require.InDelta(t, share["7 superpipeline, best"][64<<10], share["7 superpipeline, first"][64<<10], 1)
	for _, way := range []string{"put", "get"} {
		neither := share["windows "+way+", both ends unregistered"]
		require.Len(t, neither, 3, way)
		require.Greater(t, neither[256<<10], 90.0, way)
		require.Greater(t, neither[256<<10], neither[80<<10], way)
	}
}

// TestReuseProfile counts the uses of a trace that is made up.
func TestReuseProfile(t *testing.T) {
	_, err := familyOut(t, "eager tables")
	require.ErrorContains(t, err, "PGAS_TRACE")
	dir := t.TempDir()
	_, err = replayOut(t, "--shape", "cg", "--iterations", "8", "--save", dir)
	require.NoError(t, err)
	rows := figureRows(t, "eager --trace mine="+dir+" tables")
	require.Len(t, rows, 1)
	require.Equal(t, "mine", rows[0]["program"])
}

func TestFamilyArguments(t *testing.T) {
	for args, want := range map[string]string{
		"eager nothing":              "there are: ping",
		"bulk sim --csv":             "options come before",
		"bulk --reps -1 sim":         "--reps",
		"select --csv --json":        "one of them",
		"eager --trace x tables":     "NAME=DIR",
		"bulk --transport no native": "no",
		"eager --max 1 ping":         "want at least 64",
		"eager --bytes 8193 ping":    "--bytes 8193: want at most 8192",
		"eager --bytes 99999999":     "--bytes 99999999: want at most 8192",
		"eager --max 255 spectrum":   "want at least 256",
		"eager --max 63 search":      "want at least 64",
		"bulk --max 4095 sim":        "want at least 4096",
	} {
		_, err := familyOut(t, args)
		require.ErrorContains(t, err, want, args)
	}
	all := bulkCommand(nil)
	require.Contains(t, all.Description, "without a launcher")
	dir := filepath.Join(t.TempDir(), "new")
	_, err := familyOut(t, "bulk --max 8192 --out "+dir+" bulk-sim")
	require.NoError(t, err)
	for _, name := range []string{"bulk-sim.csv", "bulk-sim.json", "bulk-sim-figure6.svg"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(text), "simulated", name)
	}
}

func TestCollectives(t *testing.T) {
	rows := selectRows(collectiveRows(false), "_1K")
	require.Len(t, rows, 2)
	own := quick
	own.collectives = 3
	for _, err := range pgastest.Errors(t, 2, pgastest.Config{NIC: true}, func(ctx context.Context, w *pgas.World) error {
		b := newBench(w, own, io.Discard)
		if err := b.run(ctx, rows); err != nil {
			return err
		}
		if w.Rank() == 0 && len(b.results) != len(rows) {
			return fmt.Errorf("%d results of %d rows", len(b.results), len(rows))
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}
