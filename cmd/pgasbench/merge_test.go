package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMerge(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, results []result) string {
		var out bytes.Buffer
		require.NoError(t, printCSV(&out, header{}, results))
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
		return path
	}
	ours, again := write("a", sample), write("b", sample[:1])
	raw := write("c", []result{
		{"get8", "8 B get", "plain C", "shm", unitNanos, 9, []float64{0.25}, 0},
		{"other", "more", "plain C", "shm", unitNanos, 9, []float64{7}, 0},
	})
	var out bytes.Buffer
	require.NoError(t, mergeFiles(&out, []string{"ours=" + ours, "raw=" + raw, "ours=" + again}))
	require.Equal(t, `| | by | unit | ours | raw |
| --- | --- | --- | ---: | ---: |
| 8 B get | View.Load | ns | 1.00 (0.50–1.50) | 0.25 (0.25–0.25) |
| | Window.Get, with a comma | ns | 4.00 (4.00–4.00) | |
| more | plain C | ns | – | 7.00 (7.00–7.00) |
`, out.String())
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} { // of a file that somebody has made, or damaged
		none := write("d", []result{{"get8", "8 B get", "plain C", "shm", unitNanos, 9, []float64{1, v}, 0}})
		require.ErrorContains(t, mergeFiles(&out, []string{"x=" + none}), "is no figure")
	}
	for _, args := range [][]string{nil, {"x"}, {"x="}, {"x=" + filepath.Join(dir, "none")}} {
		require.Error(t, mergeFiles(&out, args))
	}
}

// TestMergeOfOneProgram: what two columns have by one API stands on its line, so that who compares a program with itself finds no difference.
func TestMergeOfOneProgram(t *testing.T) {
	line := func(row, api string, v ...float64) result {
		return result{row, "a " + row, api, "shm", unitNanos, 9, v, 0}
	}
	var m merged
	m.add("before", []result{line("put", "View", 1, 2, 3), line("put", "Window", 7, 8, 9), line("get", "Window", 4)})
	m.add("after", []result{line("put", "View", 1, 2, 3), line("put", "Window", 7, 8, 9), line("put", "New", 5), line("get", "Window", 4)})
	m.add("half", []result{line("put", "Window", 6)})
	m.add("raw", []result{line("put", "plain", 0.5), line("put", "plain too", 1.5)})
	var out bytes.Buffer
	require.NoError(t, m.print(&out))
	require.Equal(t, `| | by | unit | before | after | half | raw |
| --- | --- | --- | ---: | ---: | ---: | ---: |
| a put | View | ns | 2.00 (1.00–3.00) | 2.00 (1.00–3.00) | – | 1.00 (0.50–1.50) |
| | Window | ns | 8.00 (7.00–9.00) | 8.00 (7.00–9.00) | 6.00 (6.00–6.00) | |
| | New | ns | – | 5.00 (5.00–5.00) | – | |
| a get | Window | ns | 4.00 (4.00–4.00) | 4.00 (4.00–4.00) | – | – |
`, out.String())
}
