package pgastest

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"gopgas/transport/transporttest"
)

// Named is a Config with a name for a subtest.
type Named struct {
	Name string
	Config
}

// Paths returns the ways in which ranks of a test can reach each other, the ones that every other one is like: mapped
// memory, mapped memory with counting, a good NIC, and NICs that are slow, poor or narrow, or may register little. A test that passes on all of
// them assumes nothing of the path.
func Paths() []Named {
	nic := func(name string, f transporttest.FabricConfig) Named {
		return Named{"nic-" + name, Config{NIC: true, Fabric: f}}
	}
	return []Named{
		{"mapped", Config{}},
		{"counted", Config{Stats: true}},
		nic("good", transporttest.FabricConfig{}),
		nic("jitter", transporttest.FabricConfig{Seed: 1, Jitter: 50 * time.Microsecond}),
		nic("poor", transporttest.FabricConfig{NoInline: true, MaxPost: 2, MaxMessage: 1000}),
		nic("tight", transporttest.FabricConfig{MaxPinned: 4 << 20}), // heaps and windows are registered in buckets
	}
}

// Main runs a package's tests and returns the exit code for os.Exit. It fails the package if goroutines are left over,
// those that a test started and did not wait for. Call it from TestMain.
func Main(m *testing.M) int {
	before := runtime.NumGoroutine()
	code := m.Run()
	if code != 0 {
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
