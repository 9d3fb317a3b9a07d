package vm

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// Of measurements.
var (
	numbersFlag = flag.Int("vm.numbers", 0, "measure the NIC path beside a flat C loop, perftest and UCX, in so many turns, and for about as many minutes")
	roundsFlag  = flag.Int("vm.rounds", 5, "with -vm.numbers: how often, at most, each program beside the flat loop runs; once in any case")
)

// TestNumbers prints the tables that docs/performance.md quotes: go test ./test/vm -run TestNumbers -v -timeout 40m -args -vm.numbers=21
// The first two count instructions, the others are of time. What the machine prints is shown as it comes. When the time is over, be it the test's, there are
// tables of what was measured by then.
func TestNumbers(t *testing.T) {
	if *numbersFlag == 0 {
		t.Skip("measures: run with -args -vm.numbers=21")
	}
	began := time.Now()
	need(t)
	if _, err := exec.LookPath("ucx_perftest"); err != nil {
		debtest.Install(t, "ucx-utils")
	}
	debtest.Need(t, "ib_write_bw", "perftest")
	dir := t.TempDir()
	BuildAll(t, dir, verbsPackage)
	Programs(t, dir, "gopgas/cmd/pgasrun", "gopgas/cmd/pgasbench")
	script, err := filepath.Abs("testdata/numbers.sh")
	require.NoError(t, err)
	counted := Run(t, Machine{Count: true, Timeout: 10 * time.Minute, Live: os.Stdout}, "bash", script, dir, fmt.Sprint(max(*numbersFlag, 9)), "0", "1")
	require.Zero(t, counted.Code, "%s%s", counted.Stdout, counted.Stderr)
	most := 30 * time.Minute
	if end, ok := t.Deadline(); ok {
		most = min(most, time.Until(end)-30*time.Second)
	}
	left := min(time.Duration(*numbersFlag)*time.Minute-time.Since(began), most-2*time.Minute)
	var out bytes.Buffer
	defer func() { // also where Run ends the test
		fmt.Print("\nThousands of instructions, of which each takes a nanosecond:\n\n", flatTable(counted.Stdout), "\n", besides(counted.Stdout, nil))
		fmt.Print("\nMicroseconds:\n\n", flatTable(out.String()), "\n", besides(out.String(), gasnet))
	}()
	r := Run(t, Machine{Timeout: most, Live: io.MultiWriter(&out, os.Stdout)}, "bash", script, dir,
		fmt.Sprint(*numbersFlag), fmt.Sprint(int(left.Seconds())), fmt.Sprint(*roundsFlag))
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
	for _, row := range flatRows {
		require.Contains(t, flatTable(r.Stdout), "| "+row+" | ")
	}
	all := results(r.Stdout)
	for _, row := range besideRows {
		for _, program := range []string{ours, again, "perftest", "UCX"} {
			require.NotEmpty(t, all.values[cell{row, program}], "%s of %s", row, program)
		}
	}
}

// flatRows are rows of the first table.
var flatRows = []string{
	"8 B put + flush", "8 B get", "64-bit fetch-add", "64 KiB put + flush", "1 MiB put + flush", "64 puts of 8 B by PutNB, flushed together",
}

// flatTable is the first table, of the verbs transport's own test, as far as it was printed.
func flatTable(out string) string {
	var b bytes.Buffer
	for line := range bytes.Lines([]byte(out)) {
		if bytes.HasPrefix(line, []byte("| ")) {
			b.Write(line)
		}
	}
	return b.String()
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

func TestFlatTable(t *testing.T) {
	require.Equal(t, "| us |\n| --- |\n| 8 B get | 1 |\n", flatTable("| us |\n| --- |\n| 8 B get | 1 |\nround 1\nresult\t8 B get\tours\t1\n"))
}
