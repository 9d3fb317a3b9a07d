package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
