package vm

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
)

// longFlag adds the tests that take a minute or two machines.
var longFlag = flag.Bool("vm.long", false, "also run the tests over two devices and two machines, and of the device's limits")

const verbsPackage = "gopgas/transport/verbs"

// requirePassed checks that a test program that ran inside has passed, has run the tests named, and has left out only
// what the device, or this machine's set-up, does not have.
func requirePassed(t *testing.T, r Result, tests ...string) {
	t.Helper()
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
	for _, name := range tests {
		require.Contains(t, r.Stdout, "--- PASS: "+name+" ", "%s did not run", name)
	}
	skipped := regexp.MustCompile(`(?m)^\s*--- SKIP: `).FindAllString(r.Stdout, -1)
	reasons := regexp.MustCompile(`(?m): Caps: no `).FindAllString(r.Stdout, -1)
	require.Len(t, reasons, len(skipped), "tests were skipped for other reasons:\n%s", r.Stdout)
}

// TestVerbs runs the tests of the verbs transport, the conformance suite among them, on Soft-RoCE: as root, then as
// a user with limits, then without a device.
func TestVerbs(t *testing.T) {
	program := Build(t, verbsPackage)
	r := Run(t, Machine{Timeout: 4 * time.Minute}, "bash", "-c", `
		set -e
		program=$1
		PGAS_REQUIRE=verbs VERBS_TEST_INTERFACE=nic0 "$program" -test.v -test.timeout=200s
		limited() { # limited KIB TESTS
			ulimit -l "$1"
			PGAS_REQUIRE=verbs VERBS_TEST_MEMLOCK=$(($1 << 10)) setpriv --reuid=65534 --regid=65534 --clear-groups \
				"$program" -test.v -test.timeout=20s -test.run="$2"
		}
		(limited 64 '^TestMemlock$')
		(limited 8192 '^TestMemlock$|^TestConformance$/^Register$')
		rdma link delete rxe0
		"$program" -test.v -test.timeout=20s -test.run='^TestOpenWithout$'
	`, "bash", program)
	requirePassed(t, r, "TestConformance", "TestKilled", "TestLink", "TestCounters", "TestMemlock", "TestCrossings", "TestTogether", "TestBudget",
		"TestRefusedByTheDead", "TestExplain", "TestDrainForgotten", "TestRejoin", "TestCutHandshake", "TestBrokenWithoutDescriptors",
		"TestConformance/Register/limit_of_bytes")
	require.Equal(t, 2, strings.Count(r.Stdout, "--- PASS: TestMemlock"))
}

func long(t *testing.T) {
	t.Helper()
	if !*longFlag {
		t.Skip("takes a minute: run with -args -vm.long, as make check does")
	}
}

// TestVerbsTwoDevices runs the conformance suite with every second rank on another NIC, so that all goes over a wire,
// but for the tests of errors: on a wire whose processors are emulated an answer may come too late, and what an
// error means is then another question.
func TestVerbsTwoDevices(t *testing.T) {
	long(t)
	t.Setenv("VERBS_TEST_DEVICES", "rxe0:1,rxe1:1")
	t.Setenv("VERBS_TEST_ROUNDS", "400")
	t.Setenv("PGAS_REQUIRE", "verbs")
	program := Build(t, verbsPackage)
	r := Run(t, Machine{NICs: Pair, Env: []string{"VERBS_TEST_DEVICES", "VERBS_TEST_ROUNDS", "PGAS_REQUIRE"}, Timeout: 4 * time.Minute}, program, "-test.v",
		"-test.run=^TestConformance$/^(Post|PostRecv|T1|T2|T4|T6|T7|Connect|Wait|Random)$|^TestCounters$")
	requirePassed(t, r, "TestConformance", "TestCounters")
}

// TestVerbsTwoMTUs joins two devices of different MTUs: Soft-RoCE sends packets of 1024 and of 4096 bytes over such interfaces.
func TestVerbsTwoMTUs(t *testing.T) {
	long(t)
	t.Setenv("VERBS_TEST_DEVICES", "rxe0:1,rxe1:1")
	t.Setenv("PGAS_REQUIRE", "verbs")
	program := Build(t, verbsPackage)
	r := Run(t, Machine{NICs: Pair, Env: []string{"VERBS_TEST_DEVICES", "PGAS_REQUIRE"}, Timeout: 4 * time.Minute}, "bash", "-c", `
		set -e
		ip link set nic0 mtu 1500
		ip link set nic1 mtu 4300
		VERBS_TEST_MTUS=1 "$1" -test.v -test.run='^TestMTUs$'
	`, "bash", program)
	requirePassed(t, r, "TestMTUs")
}

// TestVerbsTrouble is what takes longer of what goes wrong: messages while the link goes down again and again, and, under the race
// detector, peers that are killed, devices that forget, and strangers.
func TestVerbsTrouble(t *testing.T) {
	long(t)
	program, raced := Build(t, verbsPackage), Build(t, verbsPackage, "-race")
	r := Run(t, Machine{Timeout: 6 * time.Minute}, "bash", "-c", `
		set -e
		export PGAS_REQUIRE=verbs
		VERBS_TEST_FLAPS=nic0 "$1" -test.v -test.timeout=160s -test.run='^TestLinkMessages$'
		"$2" -test.v -test.timeout=180s -test.run='^(TestKilled|TestForgotten|TestRefusedByTheLiving|TestStrangers)$'
	`, "bash", program, raced)
	requirePassed(t, r, "TestLinkMessages", "TestKilled", "TestForgotten", "TestRefusedByTheLiving", "TestStrangers")
	t.Log(regexp.MustCompile(`--- PASS: \S+ \(\S+\)`).FindAllString(r.Stdout, -1))
}

// TestVerbsInstructions holds how many instructions the library adds to a short operation by a loop in C over the same functions, kernel and all that runs
// beside included: at most a thousand are asked for (a microsecond of the machine's own clock), and half as many more are let pass here, since what the
// kernel's allocators do differs by some hundreds from run to run. In some turns of a run they take 1300 to 4000 more, with the same calls, switches and interrupts, and in some
// runs in most of them. Where those are the loop's, as with gets in most runs of some hours, ours take less than it, which is not held against them; where they are ours,
// one good run of three will do: what the library adds it adds in each.
func TestVerbsInstructions(t *testing.T) {
	long(t)
	t.Setenv("VERBS_TEST_PAIRED", "41")
	t.Setenv("PGAS_REQUIRE", "verbs")
	program := Build(t, verbsPackage)
	var over []string
	for range 3 {
		r := Run(t, Machine{Count: true, Env: []string{"VERBS_TEST_PAIRED", "PGAS_REQUIRE"}}, program, "-test.v", "-test.short", "-test.run=^TestPaired$")
		requirePassed(t, r, "TestPaired")
		over = nil
		most := 0.0
		for _, row := range flatRows[:3] {
			more := added(t, r.Stdout, row)
			t.Logf("%s: %.1f thousand instructions more", row, more)
			if most = max(most, more); more > 1.5 {
				over = append(over, row+"\n"+r.Stdout)
			}
		}
		require.Positive(t, most, "the clock does not count instructions\n%s", r.Stdout)
		if over == nil {
			return
		}
	}
	require.Empty(t, over)
}

// added is what ours takes more than the loop in a row of TestPaired's table, by the median.
func added(t *testing.T, table, row string) (us float64) {
	t.Helper()
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) > 4 && cells[0] == "| "+row {
			_, err := fmt.Sscan(cells[4], &us)
			require.NoError(t, err, line)
			return us
		}
	}
	t.Fatalf("no row %s\n%s", row, table)
	return 0
}

// TestVerbsRegionLimit takes all registrations of the device.
func TestVerbsRegionLimit(t *testing.T) {
	long(t)
	t.Setenv("VERBS_TEST_REGIONS", "all")
	t.Setenv("PGAS_REQUIRE", "verbs")
	program := Build(t, verbsPackage)
	r := Run(t, Machine{Memory: 6144, Env: []string{"VERBS_TEST_REGIONS", "PGAS_REQUIRE"}, Timeout: 4 * time.Minute}, program, "-test.v",
		"-test.run=^TestRegionLimit$")
	requirePassed(t, r, "TestRegionLimit")
}

// TestVerbsTwoMachines runs one rank on each of two machines: of the transport's own test, then of jobs that Hydra starts.
func TestVerbsTwoMachines(t *testing.T) {
	long(t)
	debtest.Need(t, "mpiexec.hydra", "mpich")
	link, shared, programs := t.TempDir(), t.TempDir(), t.TempDir()
	program := Build(t, verbsPackage)
	Programs(t, programs, "gopgas/examples/hello", "gopgas/examples/kmer", "gopgas/examples/heat")
	begin(t, filepath.Join(programs, "genome.fa"))
	script, err := filepath.Abs("testdata/pair.sh")
	require.NoError(t, err)
	var wg sync.WaitGroup
	var results [2]Result
	for node := range results {
		wg.Go(func() {
			results[node] = Run(t, Machine{Link: link, Node: node, CPUs: 1, Share: shared, Timeout: 5 * time.Minute}, "bash", "-c",
				`PGAS_REQUIRE=verbs VERBS_TEST_NODE=$1 VERBS_TEST_FOLDER=$2 "$3" -test.v -test.run='^TestTwoMachines$' && exec bash "$4" "$1" "$2" "$5"`,
				"bash", []string{"0", "1"}[node], shared, program, script, programs)
		})
	}
	wg.Wait()
	for _, r := range results {
		requirePassed(t, r, "TestTwoMachines")
	}
	require.FileExists(t, shared+"/end0")
	all := parts(t, results[0].Stdout)
	t.Log(seconds(all))
	for job, words := range map[string][]string{
		"hello": {`rank 0 of 2 on node 0 \(vm\), reaches rank 1 over verbs`, `rank 1 of 2 on node 1 \(vm\), reaches rank 0 over verbs`},
		"kmer":  {"counted by 2 ranks", "verified by a serial count"},
		"heat":  {"on 2 ranks"},
	} {
		require.Contains(t, all, job, results[0].Stdout)
		require.Zero(t, all[job].code, all[job].text)
		for _, w := range words {
			require.Regexp(t, w, all[job].text)
		}
	}
}
