package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/cmd/pgasbench/figures"
)

func regOut(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := app(&out).Run(append([]string{"pgasbench", "reg"}, args...))
	return out.String(), err
}

func TestFigureAsTableCSVAndJSON(t *testing.T) {
	table, err := regOut(t, "windows")
	require.NoError(t, err)
	require.Contains(t, table, "# replayed in virtual time")
	require.Contains(t, table, " cores, ")
	require.Contains(t, table, ", commit ")

	text, err := regOut(t, "--csv", "toolarge")
	require.NoError(t, err)
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	records, err := r.ReadAll()
	require.NoError(t, err)
	require.Equal(t, "policy", records[0][0])
	require.Len(t, records, 4)

	text, err = regOut(t, "--json", "toolarge")
	require.NoError(t, err)
	var doc struct {
		Machine, Date, Commit, Figure, Kind string
		Rows                                []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	require.Equal(t, "toolarge", doc.Figure)
	for _, v := range []string{doc.Machine, doc.Date, doc.Commit, doc.Kind} {
		require.NotEmpty(t, v)
	}
	require.Len(t, doc.Rows, 3)
	require.Equal(t, "leavepinned-noevict", doc.Rows[0]["policy"])
}

// TestPoliciesSideBySide is the command without a name, small: it measures for real.
func TestPoliciesSideBySide(t *testing.T) {
	text, err := regOut(t, "--json", "--bytes", "131072", "--iterations", "5", "--compute", "2ms")
	require.NoError(t, err)
	var doc struct {
		Rows []struct {
			Policy  string
			Peak    int64   `json:"peak_bytes"`
			Average float64 `json:"average_bytes"`
			Seconds float64
			Hits    uint64
			Misses  uint64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	require.Len(t, doc.Rows, 7)
	for _, r := range doc.Rows {
		require.Positive(t, r.Seconds, r.Policy)
		if r.Policy == "leavepinned" {
			require.EqualValues(t, 3*131072, r.Peak)
			require.EqualValues(t, 3, r.Misses)
		}
	}
}

func TestFiguresToADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	_, err := regOut(t, "--out", dir, "--iterations", "12", "grouping", "cores")
	require.NoError(t, err)
	for _, name := range []string{"grouping.csv", "grouping.json", "cores.csv", "cores-sp.svg", "cores-cg.svg"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(text), "replayed in virtual time", name)
		require.Contains(t, string(text), "commit", name)
	}
	require.Equal(t, "a/b-c.svg", between("a/b.svg", "c"))
	require.Equal(t, "b-c", between("b", "c"))
	require.Equal(t, "b.svg", between("b.svg", ""))
}

func TestFiguresOfASavedTrace(t *testing.T) {
	dir := t.TempDir()
	_, err := replayOut(t, "--shape", "sp", "--iterations", "8", "--save", dir)
	require.NoError(t, err)
	text, err := regOut(t, "--trace", "mine="+dir, "accuracy")
	require.NoError(t, err)
	require.Contains(t, text, "recorded traces")
	require.Regexp(t, `mine +context-aware, ageing 3 `, text)
}

func TestFigureArguments(t *testing.T) {
	for _, c := range [][2]string{
		{"nothing", "there are: reuse"},
		{"windows --csv", "options come before"},
		{"--reps -1 windows", "--reps"},
		{"--spikes 2 windows", "--spikes"},
		{"--csv --json windows", "one of them"},
		{"--bytes 5 reuse", "--bytes"},
		{"--trace x windows", "NAME=DIR"},
		{"--trace x=/no/such windows", "/no/such"},
		{"--cost dear nas", "cost model"},
		{"--noise NaN windows", "--noise"},
		{"--plot /no/such/x.svg nas", "a folder that is there"},
		{"--plot x.png nas", "ends in .svg"},
		{"--plot x.svg nas windows", "2 figures would be one file"},
		{"--out /dev/null/x nas", "--out: "},
	} {
		_, err := regOut(t, strings.Fields(c[0])...)
		require.ErrorContains(t, err, c[1], c[0])
	}
	taken := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(taken, "nas.csv"), 0o700))
	_, err := regOut(t, "--out", taken, "nas")
	require.ErrorContains(t, err, "want a folder that you may write to")
	_, err = regOut(t, "--transport", "wire", "reuse")
	require.ErrorContains(t, err, "wire")
	all, err := chosenFigures([]string{"all"})
	require.NoError(t, err)
	require.Len(t, all, len(figures.All()))
}
