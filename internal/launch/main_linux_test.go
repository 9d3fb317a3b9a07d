package launch

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/agent"
)

// program is the helper of testdata/rank, built once.
var program string

func TestMain(m *testing.M) {
	if os.Getenv("LAUNCH_TEST_AGENT") != "" {
		_ = agent.Serve(os.Stdin, os.Stdout, os.Environ(), "")
		os.Exit(0)
	}
	if os.Getenv("LAUNCH_TEST_LAUNCHER") != "" { // a launcher that a test kills
		var hosts []Host
		if os.Getenv("LAUNCH_TEST_LAUNCHER") == "hosts" {
			hosts = []Host{{Ranks: 1}, {Name: "b", Ranks: 1, Agent: agentCommand()}}
		}
		_, _ = Run(context.Background(), Spec{N: 2, Hosts: hosts, Argv: os.Args[1:], Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Scratch: os.Getenv("LAUNCH_TEST_SCRATCH")})
		os.Exit(0)
	}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) { // as a shell without job control has what it runs in the background do; the ranks here are to take them
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	dir, err := os.MkdirTemp("", "launch-test-")
	if err == nil {
		program = filepath.Join(dir, "rank")
		var out []byte
		if out, err = exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./testdata/rank").CombinedOutput(); err != nil {
			os.Stderr.Write(out)
		}
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		os.Stderr.WriteString(err.Error() + "\n")
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// buffer is a writer that may be read meanwhile.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await returns when the text appears; it fails the test after a while.
func (b *buffer) await(t *testing.T, text string, times int) {
	t.Helper()
	for range 3000 {
		if strings.Count(b.String(), text) >= times {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%q did not appear %d times in:\n%s", text, times, b.String())
}

type outcome struct {
	Result
	out, err string
	took     time.Duration
}

// run runs the helper's part under s and checks what must hold for every job: nothing is left, no sentence is missing.
func run(t *testing.T, s Spec, part ...string) outcome {
	t.Helper()
	var out, err buffer
	if s.Argv == nil {
		s.Argv = append([]string{program}, part...)
	}
	if s.Env == nil {
		s.Env = os.Environ()
	}
	s.Stdout, s.Stderr = &out, &err
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	res, rerr := Run(ctx, s)
	require.NoError(t, rerr)
	requireNothingLeft(t, res)
	if res.Code != 0 {
		require.NotEmpty(t, res.Cause)
	}
	return outcome{res, out.String(), err.String(), time.Since(begin)}
}

// requireNothingLeft checks that the ranks' process groups are empty. Killed grandchildren may take a moment to
// go, longer on a busy machine, and stay as zombies where the system's first process does not reap.
func requireNothingLeft(t *testing.T, res Result) {
	t.Helper()
	groups := map[string]bool{}
	for _, e := range res.Ranks {
		groups[strconv.Itoa(e.PID)] = true
	}
	require.Eventually(t, func() bool { return len(members(t, groups)) == 0 }, 30*time.Second, 5*time.Millisecond,
		"processes are left")
}

// members lists the processes of these groups that are not zombies.
func members(t *testing.T, groups map[string]bool) (pids []string) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Error(err)
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if groups[f[2]] && f[0] != "Z" {
			pids = append(pids, name)
		}
	}
	return pids
}

// alive says whether a process runs; a zombie that its parent has not reaped yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(f) > 0 && f[0] != "Z"
}

// pidsIn returns the numbers after "sleeping " in what ranks printed.
func pidsIn(t *testing.T, text string) []int {
	t.Helper()
	var pids []int
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "sleeping "); ok {
			pid, err := strconv.Atoi(v)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}
