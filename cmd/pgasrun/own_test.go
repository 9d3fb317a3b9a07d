package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/timeline"
)

// TestFilesThatAreItsOwnOutput: what is written to a file goes to pgasrun's own output where the file is that, by any name: nothing that stands there is lost, and the file stays.
func TestFilesThatAreItsOwnOutput(t *testing.T) {
	for name, c := range map[string]struct {
		flag string
		argv []string
		has  string
		code int
	}{
		"trace":                 {"--trace=%s", []string{traffic}, `"traceEvents":`, 0},
		"trace without a trace": {"--trace=%s", []string{"echo", "said"}, "said\n", 1},
		"statistics":            {"--stats=json:%s", []string{"echo", "said"}, `said` + "\n" + `{"ranks":`, 0},
	} {
		for _, as := range []string{"name", "descriptor"} {
			t.Run(name+"/"+as, func(t *testing.T) {
				t.Setenv("TMPDIR", t.TempDir())
				null, err := os.Open(os.DevNull)
				require.NoError(t, err)
				defer null.Close()
				file := filepath.Join(t.TempDir(), "log")
				log, err := os.Create(file)
				require.NoError(t, err)
				defer log.Close()
				_, err = log.WriteString("before\n")
				require.NoError(t, err)
				named := file
				if as == "descriptor" {
					named = fmt.Sprintf("/proc/self/fd/%d", log.Fd())
				}
				var errs bytes.Buffer
				args := append([]string{"pgasrun", "-n", "1", fmt.Sprintf(c.flag, named)}, c.argv...)
				require.Equal(t, c.code, run(args, streams{in: null, out: log, err: &errs}), errs.String())
				_, err = log.WriteString("after\n")
				require.NoError(t, err)
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				all := string(b)
				require.True(t, strings.HasPrefix(all, "before\n"), all)
				require.True(t, strings.HasSuffix(all, "after\n"), all)
				require.Contains(t, all, c.has)
				if name == "trace" {
					_, err := timeline.Verify(strings.NewReader(all[strings.IndexByte(all, '{') : strings.LastIndexByte(all, '}')+1]))
					require.NoError(t, err)
				}
			})
		}
	}
}

// TestTraceAndStatsInOneFile: each would write over what the other has written, by whatever name they call an ordinary file; what takes all, or nothing, may be both.
func TestTraceAndStatsInOneFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "both")
	link := file + "-too"
	require.NoError(t, os.Symlink(file, link))
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for _, c := range []struct {
		trace, stats string
		code         int
	}{{file, file, 2}, {link, file, 2}, {file, link, 2}, {os.DevNull, os.DevNull, 0}, {file, file + "-2", 0}} {
		var out, errs bytes.Buffer
		args := []string{"pgasrun", "-n", "1", "--trace", c.trace, "--stats=json:" + c.stats, traffic}
		require.Equal(t, c.code, run(args, streams{in: null, out: &out, err: &errs}), "%v: %s", c, errs.String())
		if c.code != 0 {
			require.Contains(t, errs.String(), "wanted one of its own for each")
		}
	}
}

// TestFilesOfAJobThatDoesNotBegin: what is in a file stays until a job has something to take its place, and a file that was not there is not there afterwards.
func TestFilesOfAJobThatDoesNotBegin(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old"), filepath.Join(dir, "fresh")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.go"), []byte("package main\n\nfunc main() {"), 0o600))
	bad := []string{"-H", "a", "--launcher", "fork", "--agent-path", "/no/pgasrun", "true"}
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"trace, no program":       {[]string{"--trace=%s", "./no-such-program"}, codeNotFound},
		"statistics, no program":  {[]string{"--stats=json:%s", "./no-such-program"}, codeNotFound},
		"statistics, no trace":    {[]string{"--stats=json:%s", "--trace", filepath.Join(dir, "none", "f"), "true"}, codeUsage},
		"statistics, no port":     {[]string{"--stats=json:%s", "--serve", taken.Addr().String(), "true"}, codeUsage},
		"trace, does not compile": {[]string{"--trace=%s", filepath.Join(dir, "broken.go")}, codeUsage},
		"trace, no host":          {append([]string{"--trace=%s"}, bad...), codeTrouble},
		"statistics, no host":     {append([]string{"--stats=json:%s"}, bad...), codeTrouble},
		"trace, not ours":         {[]string{"--trace=%s", "true"}, codeTrouble},
		"trace, output there":     {[]string{"--trace=%s", "-o", old, "-e", fresh, "true"}, codeTrouble},
		"statistics, errors":      {[]string{"--stats=json:%s", "-e", old, "-o", fresh, "true"}, codeTrouble},
	} {
		for _, file := range []string{old, fresh} {
			require.NoError(t, os.WriteFile(old, []byte("of an earlier job\n"), 0o600))
			args := slices.Clone(c.args)
			args[0] = fmt.Sprintf(args[0], file)
			_, errs, code := call(t, args...)
			require.Equal(t, c.code, code, "%s: %s", name, errs)
			if !slices.Contains(args, fresh) {
				b, err := os.ReadFile(old)
				require.NoError(t, err)
				require.Equal(t, "of an earlier job\n", string(b), name)
				require.NoFileExists(t, fresh, name)
			} else {
				require.Contains(t, errs, "writes to that file; wanted one of its own for each", name)
			}
			_ = os.Remove(fresh)
		}
	}
	// A job that is told to end before it has begun has nothing either.
	silent := filepath.Join(dir, "silent")
	require.NoError(t, os.WriteFile(silent, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700))
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var out, told bytes.Buffer
	args := []string{"pgasrun", "-H", "a", "--launcher", "fork", "--agent-path", silent, "--trace", old, "--stats=json:" + fresh, "true"}
	require.NoError(t, os.WriteFile(old, []byte("of an earlier job\n"), 0o600))
	require.Equal(t, 143, run(args, streams{out: &out, err: &told, signals: signals}), told.String())
	require.Equal(t, "pgasrun: stopped by SIGTERM before all ranks had started; none is left\n", told.String())
	require.NoFileExists(t, fresh)
	b, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "of an earlier job\n", string(b))
	// What takes its place may be shorter.
	require.NoError(t, os.WriteFile(old, bytes.Repeat([]byte("of an earlier job\n"), 1<<12), 0o600))
	_, errs, code := call(t, "--stats=json:"+old, "true")
	require.Zero(t, code, errs)
	b, err = os.ReadFile(old)
	require.NoError(t, err)
	require.True(t, json.Valid(b), "%s", b)
}

// TestCostsInItsOwnOutput: costs that are written to pgasrun's own output stand before what is told of them.
func TestCostsInItsOwnOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(file)
	require.NoError(t, err)
	defer log.Close()
	var errs bytes.Buffer
	require.Zero(t, run([]string{"pgasrun", "info", "--calibrate", "--write", file}, streams{out: log, err: &errs}), errs.String())
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(b), "{"), string(b))
	require.Contains(t, string(b), "}\ncosts of soft, measured in ")
}
