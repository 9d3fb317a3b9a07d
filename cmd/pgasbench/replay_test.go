package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/trace"
)

func replayOut(t *testing.T, args ...string) (string, error) {
	var out bytes.Buffer
	err := app(&out).Run(append([]string{"pgasbench", "replay"}, args...))
	return out.String(), err
}

func TestReplayOfASavedTrace(t *testing.T) {
	dir := t.TempDir()
	first, err := replayOut(t, "--shape", "sp", "--iterations", "5", "--reg", "all", "--save", dir)
	require.NoError(t, err)
	again, err := replayOut(t, "--trace", dir, "--reg", "all")
	require.NoError(t, err)
	strip := func(s string) string { // the comment that says where the trace is from
		var kept []string
		for l := range strings.Lines(s) {
			if !strings.HasPrefix(l, "# synthetic") {
				kept = append(kept, l)
			}
		}
		return strings.Join(kept, "")
	}
	require.Equal(t, strip(first), strip(again))
	require.Equal(t, 2+8, strings.Count(strip(first), "\n"), "a head, a title, a line for each policy:\n%s", first)
}

func TestReplayJSON(t *testing.T) {
	out, err := replayOut(t, "--shape", "ft", "--json", "--reg", "predictive,leavepinned-noevict", "--limit", "101000000",
		"--whole", "--ranks", "8", "--ranks-per-node", "4", "--cores", "6", "--idle", "conservative", "--series", "10", "--bytes", "268435456")
	require.NoError(t, err)
	var doc replayed
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.Len(t, doc.Results, 1)
	require.Len(t, doc.Notes, 2, "%q", doc.Notes)
	require.Contains(t, doc.Notes[1], "raise the limit")
	r := doc.Results[0]
	require.Equal(t, 4, r.Helpers)
	require.Len(t, r.Nodes, 2)
	require.Len(t, r.Nodes[0].Series, 10)
	require.Zero(t, r.Fallback)
	require.Equal(t, 8*25*2*7, doc.Events)
	require.Equal(t, r.Calls, r.Hits+r.Late+r.First+r.Again+r.Copies)
	require.EqualValues(t, doc.Events, r.Calls+r.Local)
}

// TestReplayWithFirehose: the second table is there, and the same trace saved and read gives the same bytes.
func TestReplayWithFirehose(t *testing.T) {
	dir := t.TempDir()
	limits := []string{"--limit", "33554432", "--pinned", "8388608", "--reg", "leavepinned,bounce", "--latency", "3us"}
	first, err := replayOut(t, append([]string{"--shape", "scatter", "--iterations", "4", "--bytes", "4194304", "--save", dir}, limits...)...)
	require.NoError(t, err)
	require.Contains(t, first, "8388608 of them for peers; units of 32768 bytes: 85 of each other rank, 768 for victims")
	require.Equal(t, 2, strings.Count(first, "leavepinned"), first)
	again, err := replayOut(t, append([]string{"--trace", dir}, limits...)...)
	require.NoError(t, err)
	_, first, _ = strings.Cut(first, "seed 1\n")
	_, again, _ = strings.Cut(again, "0 lost\n")
	require.Equal(t, first, again)
}

// TestReplayOfAnOlderTrace goes without firehose, and says so.
func TestReplayOfAnOlderTrace(t *testing.T) {
	dir := t.TempDir()
	old := append([]byte("PGASTRC1"), 0, 1, 0, 'S', 0, 'E', 20, 5, 2, 0, 100, 64, 6, 'Z', 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, trace.FileName(0)), old, 0o600))
	out, err := replayOut(t, "--trace", dir, "--limit", "1000000")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(out, "registered as a whole"), out)
	require.NotContains(t, out, "firehose")
}

// TestReplayOnOneNode says, once, why there is nothing to see.
func TestReplayOnOneNode(t *testing.T) {
	const why = "all ranks are on one node: nothing is registered; --ranks-per-node 1 spreads them"
	for _, c := range []struct {
		args string
		want string
	}{{"--nodes 1", why + "\n"}, {"--nodes 2", ""}, {"--ranks-per-node 1", ""}} {
		var out, warn bytes.Buffer
		a := app(&out)
		a.ErrWriter = &warn
		require.NoError(t, a.Run(append([]string{"pgasbench", "replay", "--shape", "sp", "--iterations", "2"}, strings.Fields(c.args)...)))
		require.Equal(t, c.want, warn.String(), c.args)
		require.NotContains(t, out.String(), why)
	}
}

func TestReplayOfATraceThatIsCut(t *testing.T) {
	dir := t.TempDir()
	_, err := replayOut(t, "--shape", "reuse", "--ranks", "2", "--save", dir)
	require.NoError(t, err)
	name := filepath.Join(dir, trace.FileName(1))
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, b[:len(b)/2], 0o600))
	out, err := replayOut(t, "--trace", dir)
	require.NoError(t, err)
	require.Contains(t, out, "cut short")
}

func TestReplayArguments(t *testing.T) {
	for _, c := range [][2]string{
		{"", "one of --trace and --shape"},
		{"--shape bt --trace x", "one of --trace and --shape"},
		{"--shape mg", "want one of"},
		{"--trace /nonexistent", "PGAS_TRACE"},
		{"--shape bt --reg pinned", "leavepinned"},
		{"--shape bt --idle most", "conservative"},
		{"--shape bt --cost cheap", "cost model"},
		{"--shape bt --window 5", "0 to 4"},
		{"--shape bt --limit -1", "--limit"},
		{"--shape bt --latency -1us", "--latency"},
		{"--shape bt --latency 2562047h", "--latency 2562047h0m0s: want 0 to 10s"},
		{"--shape bt --pinned 9223372036854775807", `--pinned "9223372036854775807": want a number of bytes`},
		{"--shape bt --cost free,net=NaN", "net=NaN: want GB/s"},
		{"--shape bt --cost free,copy=Inf", "copy=Inf: want GB/s"},
		{"--shape bt --cost free,copy=1e-300", "copy=1e-300: want GB/s"},
		{"--shape bt --cost free,register=1e300ns", `"1e300ns": want at most 10s`},
		{"--shape bt --cost free,deregister=1us+11s", `"11s": want at most 10s`},
		{"--shape bt --cost free,poll=-1ns", "no duration"},
		{"--shape bt --whole --pinned 1", "--whole"},
		{"--shape bt --limit 1000000 --bucket 5", "power of two"},
		{"--shape bt --noise -1", "noise -1: want 0 to 100"},
		{"--shape bt --noise NaN", "noise NaN: want"},
		{"--shape bt --noise 1e300", "noise 1e+300: want"},
		{"--shape bt --spikes 7", "spikes 7: want 0 to 1"},
		{"--shape bt --ranks -1", "ranks -1: want 1 to"},
		{"--shape bt --iterations -3", "iterations -3: want 1 to"},
		{"--shape bt --bytes 18446744073709551615", "bytes"},
		{"--shape bt bounce", `"bounce": want options only`},
		{"--shape bt --ranks-per-node 1 --nodes 2", "too few"},
	} {
		_, err := replayOut(t, strings.Fields(c[0])...)
		require.ErrorContains(t, err, c[1], c[0])
	}
}
