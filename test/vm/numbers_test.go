package vm

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// numbersFlag asks for measurements instead of tests.
var numbersFlag = flag.Int("vm.numbers", 0, "measure the NIC path beside a flat C loop, perftest and UCX, in so many turns each")

// TestNumbers prints the tables that docs/performance.md quotes: go test ./test/vm -run TestNumbers -v -args -vm.numbers=21
func TestNumbers(t *testing.T) {
	if *numbersFlag == 0 {
		t.Skip("measures: run with -args -vm.numbers=21")
	}
	need(t)
	debtest.Install(t, "perftest", "ucx-utils")
	program := Build(t, verbsPackage)
	script, err := filepath.Abs("testdata/numbers.sh")
	require.NoError(t, err)
	r := Run(t, Machine{Timeout: 10 * time.Minute}, "bash", script, program, fmt.Sprint(*numbersFlag))
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
	require.Contains(t, r.Stdout, "8 B put + flush")
	fmt.Print(r.Stdout)
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
