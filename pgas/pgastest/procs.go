package pgastest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gopgas/internal/launch"
	"gopgas/pgas"
)

// envCall tells a process that it is a rank, and of which call of RunProcs.
const envCall = "PGAS_TEST_CALL"

// Procs says how process ranks are started.
type Procs struct {
	TimeLimit time.Duration // 0: 60 s
	Env       []string      // NAME=value, set in every rank: "PGAS_LOCAL=off"
	NoKill    bool          // ranks go on when one fails, and are told
}

// RunProcs runs f as each of n ranks, every rank a process: the test binary again, with only the calling test selected,
// and started as pgasrun does it. In the test it returns when all have ended; it fails the test with their output
// unless all ended well. In a rank the call does not return. What comes before the call in the test runs in the ranks
// too. A loop that calls it does so in subtests.
func RunProcs(t *testing.T, n int, f func(ctx context.Context, w *pgas.World) error) {
	t.Helper()
	r, out := StartProcs(t, n, Procs{}, 2, f)
	if r.Code != 0 {
		t.Fatalf("%d ranks ended with %d: %s\n%s", n, r.Code, r.Cause, out)
	}
	if out != "" {
		t.Log(out)
	}
}

// RunProcsConfig is RunProcs with settings.
func RunProcsConfig(t *testing.T, n int, c Procs, f func(ctx context.Context, w *pgas.World) error) {
	t.Helper()
	r, out := StartProcs(t, n, c, 2, f)
	if r.Code != 0 {
		t.Fatalf("%d ranks ended with %d: %s\n%s", n, r.Code, r.Cause, out)
	}
	if out != "" {
		t.Log(out)
	}
}

// StartProcs is RunProcs for tests of failures: it returns how the job ended and what it printed. skip is 1 for the
// caller itself; it identifies the call by its line.
func StartProcs(t *testing.T, n int, c Procs, skip int, f func(ctx context.Context, w *pgas.World) error) (launch.Result, string) {
	t.Helper()
	_, file, line, _ := runtime.Caller(skip)
	call := fmt.Sprintf("%s %s:%d", t.Name(), file[strings.LastIndexByte(file, '/')+1:], line)
	if mine := os.Getenv(envCall); mine != "" {
		if mine == call {
			pgas.Main(f) // does not return
		}
		t.Skip("this process is a rank of another call")
	}
	if c.TimeLimit == 0 {
		c.TimeLimit = time.Minute
	}
	var out lockedBuffer
	r, err := launch.Run(t.Context(), launch.Spec{
		N: n, Argv: argv(t.Name()), Env: os.Environ(),
		Set:     append([]string{envCall + "=" + call, "GORACE=atexit_sleep_ms=0"}, c.Env...),
		StdinTo: launch.StdinNone,
		Stdout:  &out, Stderr: &out, Label: true, Timeout: c.TimeLimit, NoKill: c.NoKill,
	})
	if err != nil {
		t.Fatalf("start %d ranks: %v\n%s", n, err, out.String())
	}
	return r, out.String()
}

// argv is this test binary with only the named test selected, as short as this one, and the program's own flags.
func argv(test string) []string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0] // which may be a path from where the test has gone away
	}
	args := []string{self, "-test.run=" + strings.Join(parts, "/"), "-test.count=1"}
	if testing.Short() {
		args = append(args, "-test.short") // the ranks must agree with the test on how much there is to do
	}
	return append(args, ownArgs(os.Args[1:], flag.Lookup)...)
}

// ownArgs is args without the flags of package testing. They are read as package flag reads them: a value may be an argument of its own, and what follows
// the flags is none, whatever it looks like.
func ownArgs(args []string, known func(name string) *flag.Flag) (own []string) {
	for i := 0; i < len(args); i++ {
		if len(args[i]) < 2 || args[i][0] != '-' || args[i] == "--" {
			return append(own, args[i:]...)
		}
		name, _, whole := strings.Cut(strings.TrimPrefix(args[i][1:], "-"), "=")
		end := i + 1
		if f := known(name); f != nil && !whole && !isBool(f) {
			end = min(end+1, len(args))
		}
		if !strings.HasPrefix(name, "test.") {
			own = append(own, args[i:end]...)
		}
		i = end - 1
	}
	return own
}

// isBool says of a flag that it needs no value.
func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// lockedBuffer collects what the ranks print.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// NamedProcs is a Procs with a name for a subtest.
type NamedProcs struct {
	Name string
	Procs
}

// ProcPaths returns the ways in which ranks that are processes reach each other: mapped memory and the NICs that every
// machine has. PGAS_TEST_PATHS picks some, or names another NIC, as it does for Paths.
func ProcPaths() []NamedProcs {
	var out []NamedProcs
	for _, p := range Paths() {
		switch {
		case p.Nodes != nil: // ProcNodes
		case p.Over != "":
			out = append(out, NamedProcs{p.Over, Procs{Env: []string{"PGAS_LOCAL=off", "PGAS_TRANSPORT=" + p.Over}}})
		case p.Name == "mapped":
			out = append(out, NamedProcs{Name: p.Name})
		}
	}
	return out
}

// ProcNodes returns those ways in which there are nodes of several ranks, with mapped memory within and a NIC between them.
func ProcNodes() []NamedProcs {
	var out []NamedProcs
	for _, p := range Paths() {
		if p.Over != "" && p.Nodes != nil {
			nodes := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Nodes), " ", ","), "[]")
			out = append(out, NamedProcs{p.Name, Procs{Env: []string{"PGAS_NODES=" + nodes, "PGAS_TRANSPORT=" + p.Over}}})
		}
	}
	return out
}
