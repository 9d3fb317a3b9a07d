package vm

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pingLoops are the rounds of a repeat in pgasbench's table of small transfers, and the one that is not timed.
const pingLoops = 40

// TestPing has small transfers go through slots and past them over verbs, by turns in one process: all go as they are told, by the library's counters,
// and the NIC sends as many packets for the one as for the other, by its own. With -vm.numbers it prints what they take, as docs/reproduction.md
// quotes it: go test ./test/vm -run TestPing -v -timeout 30m -args -vm.numbers=3
func TestPing(t *testing.T) {
	repeats, each, limit := *numbersFlag, 50, 25*time.Minute
	if repeats == 0 {
		long(t)
		repeats, each, limit = 1, 5, 12*time.Minute
	}
	need(t)
	r := Run(t, Machine{Timeout: limit}, Program(t, "gopgas/cmd/pgasbench"), "eager", "--transport", "verbs",
		"--reps", fmt.Sprint(repeats), "--iterations", fmt.Sprint(each), "--csv", "ping")
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
	if *numbersFlag > 0 {
		fmt.Print(r.Stdout)
	}
	rows := table(t, r.Stdout)
	require.Len(t, rows, 2*8, "put and get, 64 B to 8 KiB")
	for _, row := range rows {
		what := row["op"] + ", " + row["bytes"] + " bytes"
		want := strconv.Itoa((pingLoops*repeats + 1) * each)
		require.Equal(t, want, row["bounced"], what)
		require.Equal(t, want, row["bypassed"], what)
		bounced, err := strconv.Atoi(row["bounce_packets"])
		require.NoError(t, err)
		bypassed, err := strconv.Atoi(row["bypass_packets"])
		require.NoError(t, err)
		require.GreaterOrEqual(t, bounced, 2*each, "%s: a request each, and what answers it", what)
		require.Equal(t, bounced, bypassed, "%s: packets", what)
	}
}

// table reads a table of comma-separated values below lines that begin with #.
func table(t *testing.T, text string) (rows []map[string]string) {
	t.Helper()
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	all, err := r.ReadAll()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func TestTable(t *testing.T) {
	require.Equal(t, []map[string]string{{"a": "1", "b": "put, flush"}}, table(t, "# head\na,b\n1,\"put, flush\"\n"))
}
