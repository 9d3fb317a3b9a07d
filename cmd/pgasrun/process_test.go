package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/control"
)

func TestGoPackagesAreBuiltFirst(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	mod := t.TempDir()
	main := filepath.Join(mod, "hello", "main.go")
	require.NoError(t, os.Mkdir(filepath.Dir(main), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(mod, "go.mod"), []byte("module m\n\ngo 1.26\n"), 0o644))
	require.NoError(t, os.WriteFile(main, []byte("package main\n\nimport (\"fmt\"; \"os\")\n\nfunc main() { fmt.Println(\"built\", os.Args[1:], os.Args[0]) }\n"), 0o644))
	cmd := exec.Command(pgasrun, "-n", "2", "./hello", "-n", "7")
	for name, c := range map[string]struct{ dir, program string }{
		"path":           {mod, "./hello"},
		"bare name":      {mod, "hello"},
		"import path":    {mod, "m/hello"},
		"other module":   {".", filepath.Join(mod, "hello")},
		"file":           {mod, "hello/main.go"},
		"folder itself":  {filepath.Join(mod, "hello"), "."},
		"with a slash":   {mod, "./hello/"},
		"absolute, file": {".", main},
	} {
		t.Run(name, func(t *testing.T) {
			cmd = exec.Command(pgasrun, "-n", "2", c.program, "-n", "7")
			cmd.Dir = c.dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, 2, strings.Count(string(out), "built [-n 7] "+tmp+"/pgasrun-"), "%s", out)
			requireEmpty(t, tmp)
		})
	}
}

// requireEmpty checks R3. What the go command makes for itself is its own affair.
func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "pgasrun-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// locked is a writer that may be read meanwhile.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestInterruptFromOutside(t *testing.T) {
	tmp := t.TempDir()
	for name, c := range map[string]struct {
		sig    syscall.Signal
		code   int
		during string // what is on standard output when the signal comes; empty: the build has only begun
	}{
		"INT while running":   {syscall.SIGINT, 130, "sleeping"},
		"TERM while running":  {syscall.SIGTERM, 143, "sleeping"},
		"HUP while running":   {syscall.SIGHUP, 129, "sleeping"},
		"INT while building":  {syscall.SIGINT, 130, ""},
		"TERM while building": {syscall.SIGTERM, 143, ""},
		"KILL while building": {syscall.SIGKILL, -1, ""},
		"KILL while running":  {syscall.SIGKILL, -1, "sleeping"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs locked
			cmd := exec.Command(pgasrun, "-n", "2", "../../internal/launch/testdata/rank", "sleep")
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
			if c.during == "" { // a cold cache makes the build last
				cmd.Env = append(cmd.Env, "GOCACHE="+t.TempDir())
			}
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool {
				dirs, _ := filepath.Glob(filepath.Join(tmp, "pgasrun-*"))
				return len(dirs) == 1 && strings.Count(out.String(), "sleeping") == 2*min(1, len(c.during))
			}, 30*time.Second, time.Millisecond)
			if c.during == "" { // the go command has its folder
				require.Eventually(t, func() bool { return len(goFolders(tmp)) > 0 }, 30*time.Second, time.Millisecond)
			}
			require.NoError(t, cmd.Process.Signal(c.sig))
			_ = cmd.Wait()
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), errs.String())
			if c.during == "" && c.code > 0 {
				require.Contains(t, errs.String(), "nothing was started")
			}
			require.Eventually(t, func() bool {
				dirs, _ := filepath.Glob(filepath.Join(tmp, "*"))
				return len(dirs) == 0
			}, 5*time.Second, time.Millisecond, "a folder of the build is left")
		})
	}
}

// goFolders are those of go commands that build, in tmp or in a folder of pgasrun in it.
func goFolders(tmp string) []string {
	direct, _ := filepath.Glob(filepath.Join(tmp, "go-build*"))
	within, _ := filepath.Glob(filepath.Join(tmp, "*", "go-build*"))
	return append(direct, within...)
}

// TestInterruptWhileJoining: a rank that waits for another one to join ends at once, and nobody complains of its end.
func TestInterruptWhileJoining(t *testing.T) {
	var out, errs locked
	const script = `echo up; if [ $PGAS_RANK = 1 ]; then exec sleep 100; fi; exec "$0"`
	cmd := exec.Command(pgasrun, "-n", "2", "sh", "-c", script, traffic)
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Count(out.String(), "up") == 2 }, 30*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), errs.String())
	require.Equal(t, "pgasrun: ended by SIGINT, which the launcher received and forwarded\n", errs.String())
}

// TestInterruptThatIsIgnored: the launcher says how to end a job that goes on after Ctrl-C.
func TestInterruptThatIsIgnored(t *testing.T) {
	var out, errs locked
	cmd := exec.Command(pgasrun, "--grace", "10ms", "sh", "-c", `trap "" INT; echo up; exec sleep 100`)
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "up") }, 30*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "another one (Ctrl-C) kills them") }, 30*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), errs.String())
	require.Contains(t, errs.String(), "second SIGINT: killing all ranks")
}

func TestStandardInput(t *testing.T) {
	cmd := exec.Command(pgasrun, "-n", "2", rank, "stdin")
	cmd.Stdin = strings.NewReader("some input")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), `0 read "some input"`)
	require.Contains(t, string(out), `1 read ""`)
}

// TestTerminal runs pgasrun on a terminal of its own, by script(1): ranks must not be stopped when rank 0 reads, and Ctrl-C
// must end the job.
func TestTerminal(t *testing.T) {
	cmd := exec.Command("script", "-qec", pgasrun+" -n 2 "+rank+" stdin", "/dev/null")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var out locked
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(out.String(), `1 read ""`) }, 10*time.Second, 5*time.Millisecond)
	_, err = in.Write([]byte("typed\n\x04"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), `0 read "typed\n"`) }, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, cmd.Wait())

	cmd = exec.Command("script", "-qec", pgasrun+" -n 2 "+rank+" sleep", "/dev/null")
	in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out = locked{}
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Count(out.String(), "sleeping") == 2 }, 10*time.Second, 5*time.Millisecond)
	_, err = in.Write([]byte{3}) // Ctrl-C
	require.NoError(t, err)
	_ = cmd.Wait()
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), out.String())
}

// TestWrappedRankHasTheTerminal: a debugger finds a terminal in all three places, is in the foreground, and gets Ctrl-C alone; then
// the terminal is pgasrun's again, as it was.
func TestWrappedRankHasTheTerminal(t *testing.T) {
	debugger := filepath.Join(t.TempDir(), "debugger")
	require.NoError(t, os.WriteFile(debugger, []byte(`#!/bin/sh
[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo three terminals
trap 'c=1; echo caught' INT
stty -echo
echo ready
while [ -z "$c" ]; do sleep 0.02; done
read line
echo "read $line"
`), 0o755))
	job := pgasrun + " -n 2 --wrap 1:" + debugger + " " + rank + " sleep"
	cmd := exec.Command("script", "-qec", "trap : INT; stty echo; "+job+"; code=$?; stty -a; exit $code", "/dev/null")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var out locked
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	says := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(out.String(), text) }, 30*time.Second, 5*time.Millisecond, "%s", text)
	}
	says("three terminals")
	says("ready")
	says("sleeping") // rank 0
	_, err = in.Write([]byte{3})
	require.NoError(t, err)
	says("caught")
	_, err = in.Write([]byte("typed\n"))
	require.NoError(t, err)
	says("read typed")
	for try := time.Now(); !strings.Contains(out.String(), "ended by SIGINT"); {
		_, err = in.Write([]byte{3}) // rank 0 still runs; this ends it, unless the debugger, which is ending, still got it
		require.NoError(t, err)
		require.Less(t, time.Since(try), 30*time.Second, out.String())
		for wait := 0; wait < 100 && !strings.Contains(out.String(), "ended by SIGINT"); wait++ {
			time.Sleep(10 * time.Millisecond)
		}
	}
	_ = cmd.Wait()
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), out.String())
	require.Regexp(t, `(?m)[^-]\becho\b`, out.String()[strings.Index(out.String(), "read typed"):], "the debugger had switched it off")
}

func TestStatistics(t *testing.T) {
	_, errs, code := call(t, "-n", "2", "--stats=json", rank, "stats")
	require.Zero(t, code, errs)
	require.JSONEq(t, `{"ranks":[
		{"rank":0,"node":"here","transports":{"shm":{"ops":2,"bytes":108,"waits":1,"paths":{
			"mapped":{"ops":1,"bytes":8,"waits":1},"bounce":{"ops":1,"bytes":100,"waits":0}}}}},
		{"rank":1,"node":"here","transports":{"shm":{"ops":3,"bytes":108,"waits":1,"paths":{
			"mapped":{"ops":2,"bytes":8,"waits":1},"bounce":{"ops":1,"bytes":100,"waits":0}}}}}]}`, errs)

	file := filepath.Join(t.TempDir(), "stats.json")
	_, errs, code = call(t, "--stats=json:"+file, rank, "stats")
	require.Zero(t, code)
	require.Empty(t, errs)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, json.Valid(b))

	_, errs, code = call(t, "-n", "2", "--stats", rank, "stats")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^ *rank +node +transport +path +ops +bytes +waits$`, errs)
	require.Regexp(t, `(?m)^ *1 +here +shm +mapped +2 +8 +1$`, errs)
	require.NotContains(t, errs, "tcp", "it carried nothing")

	_, errs, code = call(t, "--stats=json", "true")
	require.Zero(t, code)
	require.JSONEq(t, `{"ranks":[{"rank":0,"node":"","missing":true,"transports":{}}]}`, errs)
	require.Contains(t, statsTable(collectStats(1, nil)), "sent no statistics")
	table := statsTable(collectStats(1, []control.Stats{{Extra: map[string]float64{"retries": 2.5}}}))
	require.Contains(t, table, "moved nothing")
	require.Regexp(t, `(?m)retries +2\.5 *$`, table, "that others moved what is its own costs it something all the same")
	table = statsTable(collectStats(1, []control.Stats{{
		Transports: map[string]map[string]control.Path{"soft": {"bounce": {Ops: 1, Bytes: 8}}},
		Extra:      map[string]float64{"reg.hits": 3, "reg.evicted": 0, "reg.helper": 0, "reg.peak": 1 << 20, "reg.average": 57769.32},
	}}))
	require.Regexp(t, `(?m)reg\.hits +3 *$`, table)
	require.NotContains(t, table, "evicted", "nothing was")
	require.Regexp(t, `(?m)reg\.helper +0 *$`, table, "that is news")
	require.Regexp(t, `(?m)reg\.peak +1048576 *$`, table)
	require.Regexp(t, `(?m)reg\.average +57769\.3 *$`, table)
}

func BenchmarkHello(b *testing.B) {
	for _, n := range []string{"2", "8"} {
		b.Run(n, func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.Command(pgasrun, "-n", n, rank, "hello").CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}

func BenchmarkPlainExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command(rank, "exit", "0", "0").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
