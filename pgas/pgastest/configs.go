package pgastest

import (
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gopgas/transport/transporttest"
)

// PathsVariable names the environment variable that lists, with commas, the paths on which tests run: names that Paths
// knows, and those of NICs that not every machine has. Without it tests run on all that every machine has.
const PathsVariable = "PGAS_TEST_PATHS"

// Named is a Config with a name for a subtest.
type Named struct {
	Name string
	Config
}

// Paths returns the ways in which ranks of a test can reach each other, the ones that every other one is like: mapped
// memory, mapped memory with counting, NICs that are good, slow, poor, narrow, or may
// register little, real NICs made of software, and nodes of one or two ranks each, with mapped memory within and a NIC between them. A test
// that passes on all of them assumes nothing of the path. PGAS_TEST_PATHS picks some, or names another real NIC.
func Paths() []Named {
	all := []Named{
		{"mapped", Config{}},
		{"counted", Config{Stats: true}},
	}
	all = append(all, Fabrics()...)
	for _, name := range []string{"soft", "tcp"} {
		if os.Getenv(PathsVariable) != "" || mayPin() {
			all = append(all, over(name))
		}
	}
	nodes := Named{"nodes", Config{NIC: true, Nodes: someNodes(), Fabric: transporttest.FabricConfig{Seed: 1, Jitter: 50 * time.Microsecond}}}
	all = append(all, nodes)
	if os.Getenv(PathsVariable) != "" || mayPin() {
		all = append(all, over(onNodes+"tcp"))
	}
	return pick(all, os.Getenv(PathsVariable))
}

// PathsOf returns those of Paths on which this test runs: mapped memory, the good NIC, and some of the others by turns, by the test's name, so that a
// package of some tests runs over every path. With -short these are every fourth one. Race builds have every second one, but leave out the nodes over a real
// NIC, and other builds have those that race builds leave out. PGAS_TEST_PATHS leaves out none.
func PathsOf(t testing.TB) []Named {
	t.Helper()
	all := Paths()
	if os.Getenv(PathsVariable) != "" {
		return all
	}
	return pathsOf(t.Name(), all, testing.Short(), raceEnabled)
}

func pathsOf(test string, all []Named, short, raced bool) []Named {
	if short && !raced {
		return every(4, 0, all, test)
	}
	n := len(all)
	if strings.HasPrefix(all[n-1].Name, onNodes) {
		n--
	}
	if raced {
		return every(2, 0, all[:n], test)
	}
	return append(every(2, 1, all[:n], test), all[n:]...)
}

// every returns mapped memory, the good NIC, and every nth one of the others, from one that the test's name and the turn choose.
func every(nth, turn uint32, all []Named, test string) (some []Named) {
	test, _, _ = strings.Cut(test, "/")
	turn += crc32.ChecksumIEEE([]byte(test))
	for _, p := range all {
		if p.Name != "mapped" && p.Name != "nic-good" {
			if turn++; turn%nth != 0 {
				continue
			}
		}
		some = append(some, p)
	}
	return some
}

// Fabrics returns the paths over a loop-back NIC: what goes on between ranks can be changed there, and a NIC killed.
func Fabrics() []Named {
	nic := func(name string, f transporttest.FabricConfig) Named {
		return Named{"nic-" + name, Config{NIC: true, Fabric: f}}
	}
	return []Named{
		nic("good", transporttest.FabricConfig{}),
		nic("jitter", transporttest.FabricConfig{Seed: 1, Jitter: 50 * time.Microsecond}),
		nic("poor", transporttest.FabricConfig{NoInline: true, MaxPost: 2, MaxMessage: 1000}),
		// Heaps and windows are registered in buckets, and there is no room for pipes that could be forced.
		{"nic-tight", Config{NIC: true, Fabric: transporttest.FabricConfig{MaxPinned: 4 << 20}, Bulk: "auto"}},
	}
}

// onNodes, before the name of a NIC, is the path over it between nodes of several ranks.
const onNodes = "nodes-"

// someNodes are nodes of one and of two ranks. Three ranks are two on a node and one on another, and two ranks share a node, where the NIC is for memory
// that is not the library's.
func someNodes() []int { return []int{0, 0, 1, 2, 2} }

// over is the path over a NIC of package auto.
func over(path string) Named {
	name, nodes := strings.CutPrefix(path, onNodes)
	c := Config{NIC: true, Over: name}
	if nodes {
		c.Nodes = someNodes()
	}
	return Named{path, c}
}

// pick returns the paths that a list names, in its order; all for an empty list. Another name is that of a real NIC; if
// there is none of that name, each test that uses it fails and says so.
func pick(all []Named, list string) []Named {
	if list == "" {
		return all
	}
	var picked []Named
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if i := slices.IndexFunc(all, func(n Named) bool { return n.Name == name }); i >= 0 {
			picked = append(picked, all[i])
		} else {
			picked = append(picked, over(name))
		}
	}
	return picked
}

// Main runs a package's tests and returns the exit code for os.Exit. It fails the package if goroutines are left over,
// those that a test started and did not wait for. Call it from TestMain.
func Main(m *testing.M) int {
	before := runtime.NumGoroutine()
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); code != 0 || f != nil && f.Value.String() != "" { // fuzzing leaves goroutines of its own
		return code
	}
	// A goroutine whose work is done may not have ended yet.
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			fmt.Fprintf(os.Stderr, "%d goroutines are left over:\n%s\n", runtime.NumGoroutine()-before, buf[:runtime.Stack(buf, true)])
			return 1
		}
	}
	return 0
}
