package vm

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// Of measurements.
var (
	numbersFlag = flag.Int("vm.numbers", 0, "measure the NIC path beside a flat C loop, perftest and UCX, in so many turns each")
	roundsFlag  = flag.Int("vm.rounds", 5, "with -vm.numbers: how often each program runs")
)

// TestNumbers prints the tables that docs/performance.md quotes: go test ./test/vm -run TestNumbers -v -args -vm.numbers=21
func TestNumbers(t *testing.T) {
	if *numbersFlag == 0 {
		t.Skip("measures: run with -args -vm.numbers=21")
	}
	need(t)
	debtest.Install(t, "perftest", "ucx-utils")
	dir := t.TempDir()
	BuildAll(t, dir, verbsPackage)
	Programs(t, dir, "gopgas/cmd/pgasrun", "gopgas/cmd/pgasbench")
	script, err := filepath.Abs("testdata/numbers.sh")
	require.NoError(t, err)
	r := Run(t, Machine{Timeout: 25 * time.Minute}, "bash", script, dir, fmt.Sprint(*numbersFlag), fmt.Sprint(*roundsFlag))
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
	require.Contains(t, r.Stdout, "8 B put + flush")
	fmt.Print(r.Stdout)
	table := besides(r.Stdout)
	require.Contains(t, table, "| 1 MiB puts, 64 together | ")
	fmt.Print(table)
}

// Rows of numbers.sh of which besides makes another.
const (
	oneAtATime = "8 B put, one at a time"
	together   = "8 B puts, 64 together"
	quotient   = "8 B puts: one at a time / 64 together"
)

// besides makes a table of the results of numbers.sh: medians, and the least and the greatest, in microseconds.
func besides(out string) string {
	var rows, programs []string
	values := map[[2]string][]float64{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 || f[0] != "result" {
			continue
		}
		if !slices.Contains(rows, f[1]) {
			rows = append(rows, f[1])
		}
		if !slices.Contains(programs, f[2]) {
			programs = append(programs, f[2])
		}
		if v, err := strconv.ParseFloat(f[3], 64); err == nil {
			values[[2]string{f[1], f[2]}] = append(values[[2]string{f[1], f[2]}], v)
		}
	}
	for _, program := range programs { // what it brings to post together
		one, many := values[[2]string{oneAtATime, program}], values[[2]string{together, program}]
		if len(one) == 0 || len(one) != len(many) {
			continue
		}
		if !slices.Contains(rows, quotient) {
			rows = append(rows, quotient)
		}
		for i := range one { // of the same round
			values[[2]string{quotient, program}] = append(values[[2]string{quotient, program}], one[i]/many[i])
		}
	}
	var table strings.Builder
	table.WriteString("| us for one | " + strings.Join(programs, " | ") + " |\n| ---" + strings.Repeat(" | ---:", len(programs)) + " |\n")
	for _, row := range rows {
		table.WriteString("| " + row)
		for _, program := range programs {
			v := slices.Sorted(slices.Values(values[[2]string{row, program}]))
			if len(v) == 0 {
				table.WriteString(" | –")
				continue
			}
			fmt.Fprintf(&table, " | %.4g (%.4g–%.4g)", v[len(v)/2], v[0], v[len(v)-1])
		}
		table.WriteString(" |\n")
	}
	return table.String()
}

func TestBesides(t *testing.T) {
	require.Equal(t, "| us for one | ours | UCX |\n| --- | ---: | ---: |\n| put | 2 (1–3.5) | 7 (7–7) |\n| get | – | 12.35 (12.35–12.35) |\n", besides(
		"round 1\nresult\tput\tours\t3.5\nresult\tput\tUCX\t7\nresult\tget\tours\t-\nresult\tget\tUCX\t12.345\n"+
			"result\tput\tours\t1\nresult\tput\tours\t2\n| not a result |\n"))
	require.Contains(t, besides("result\t8 B put, one at a time\tours\t6\nresult\t8 B puts, 64 together\tours\t2\n"+
		"result\t8 B put, one at a time\tours\t8\nresult\t8 B puts, 64 together\tours\t4\nresult\t8 B put, one at a time\tUCX\t8\n"),
		"| 8 B puts: one at a time / 64 together | 3 (2–3) | – |\n")
}

// TestCosts prints what registrations cost with the NIC of the machine, and copies, as docs/reproduction.md quotes it:
// go test ./test/vm -run TestCosts -v -args -vm.numbers=1
func TestCosts(t *testing.T) {
	if *numbersFlag == 0 {
		t.Skip("measures: run with -args -vm.numbers=1")
	}
	need(t)
	program := Program(t, "gopgas/cmd/pgasbench")
	r := Run(t, Machine{Timeout: 10 * time.Minute}, program, "reg", "--reps", fmt.Sprint(*numbersFlag), "--csv", "costs")
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
	require.Contains(t, r.Stdout, "verbs,4096,")
	fmt.Print(r.Stdout)
}
