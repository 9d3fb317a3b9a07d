package agent

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

const version = "v1"

// TestMain makes the test binary an agent where a test starts it as one, and fails on goroutines that the tests leave.
func TestMain(m *testing.M) {
	if os.Getenv("AGENT_TEST_SERVE") != "" {
		if err := Serve(os.Stdin, os.Stdout, os.Environ(), os.Getenv("AGENT_TEST_SERVE")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(code) // whoever fuzzes waits for signals, and does not stop that
	}
	for range 3000 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); code == 0 && n > before {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%d goroutines are left, %d before\n%s\n", n, before, buf[:runtime.Stack(buf, true)])
		code = 1
	}
	os.Exit(code)
}
