package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/timeline"
)

// span is a complete event of a file for Perfetto.
type span struct {
	Name, Ph, Cat string
	PID, TID      int
	TS, Dur       float64
	Args          map[string]any
}

func spansOf(t *testing.T, file string) (all []span) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var doc struct{ TraceEvents []span }
	require.NoError(t, json.Unmarshal(b, &doc))
	for _, e := range doc.TraceEvents {
		if e.Ph == "X" {
			all = append(all, e)
		}
	}
	return all
}

func TestTraceOfProcesses(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	file := filepath.Join(dir, "out.json")
	_, errs, code := call(t, "-n", "4", "--trace", file, traffic)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^pgasrun: .*out\.json: \d+ spans of 4 ranks; open it with https://ui\.perfetto\.dev$`, errs)
	requireEmpty(t, tmp)
	all := spansOf(t, file)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	counts, err := timeline.Verify(f)
	require.NoError(t, err)
	require.Equal(t, 4, counts.Processes)
	require.Equal(t, len(all), counts.Spans)

	var barriers [4][]span // the program's collective calls, by rank
	puts := map[string]int{}
	for _, e := range all {
		switch {
		case e.Cat == "collective" && e.Name == "barrier":
			barriers[e.PID] = append(barriers[e.PID], e)
		case e.Cat == "transfer" && e.Name == "put":
			require.Regexp(t, `^traffic/main\.go:\d+$`, e.Args["at"])
			puts[fmt.Sprint(e.PID, " ", e.Args["rank"], " ", e.Args["bytes"])]++
		}
	}
	for r := range 4 {
		require.Equal(t, r+1, puts[fmt.Sprint(r, " ", (r+1)%4, " ", 1e6)])
		require.Equal(t, r+1, puts[fmt.Sprint(r, " ", (r+2)%4, " ", 1e5)])
		require.Len(t, barriers[r], len(barriers[0]), "all make the same calls")
		require.NotEmpty(t, barriers[r])
		slices.SortFunc(barriers[r], func(a, b span) int { return int(a.TS - b.TS) })
	}
	// Nobody leaves a barrier before all have come to it: so it must look, if the ranks' clocks are one.
	for i := range barriers[0] {
		came, left := 0.0, 1e18
		for r := range 4 {
			came, left = max(came, barriers[r][i].TS), min(left, barriers[r][i].TS+barriers[r][i].Dur)
		}
		require.LessOrEqual(t, came, left+100, "barrier %d, in microseconds", i)
	}
	ends := map[[2]int]float64{} // by lane
	slices.SortStableFunc(all, func(a, b span) int { return int(1000*a.TS) - int(1000*b.TS) })
	for _, e := range all {
		lane := [2]int{e.PID, e.TID}
		require.GreaterOrEqual(t, e.TS+0.0015, ends[lane], "spans of a lane overlap")
		ends[lane] = e.TS + e.Dur
	}
}

// A rank that is killed has written what it did until shortly before; the picture is made of what there is.
func TestTraceOfAJobThatFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.json")
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"not ours":     {[]string{"--trace", file, "true"}, codeTrouble, "no rank wrote anything"},
		"no such path": {[]string{"--trace", filepath.Join(dir, "no", "x.json"), "true"}, codeUsage, "the file cannot be made: open "},
		"no name":      {[]string{"--trace", "", "true"}, codeUsage, "--trace without a file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := call(t, c.args...)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, errs, c.says)
			require.NoFileExists(t, file)
		})
	}
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, errs, code := call(t, "--trace", pipe, "true")
	require.Equal(t, codeTrouble, code, errs)
	_, err := os.Stat(pipe)
	require.NoError(t, err, "what is no plain file, such as /dev/null, stays")
	_, errs, code = call(t, "-n", "3", "--trace", file, traffic, "fail")
	require.Equal(t, 7, code, errs)
	require.Contains(t, errs, "spans of 3 ranks", "the job's own failure decides its code, and there is a picture all the same")
	require.NotEmpty(t, spansOf(t, file))
}

// TestTraceOfRanksThatStartOthers: what a rank starts with its environment, a program alone or a job of another pgasrun, leaves the ranks' timelines as they are.
func TestTraceOfRanksThatStartOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	other := heat + " -rows 8 -cols 8 -steps 1"
	script := traffic + "; env -u PMI_FD -u PMI_RANK -u PMI_SIZE " + other + "; " + pgasrun + " -n 3 " + other
	_, errs, code := call(t, "-n", "2", "--trace", file, "sh", "-c", script)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "spans of 2 ranks")
	require.Contains(t, errs, "PGAS_TIMELINE is for the ranks of the job")
	var lines [2]int
	for _, e := range spansOf(t, file) {
		require.NotContains(t, fmt.Sprint(e.Args), "heat/main.go")
		lines[e.PID]++
	}
	require.Positive(t, lines[0])
	require.Positive(t, lines[1])
}

// TestTracesOfRanksThatStartOthers: so it is with PGAS_TRACE, which the caller of the outer pgasrun has set.
func TestTracesOfRanksThatStartOthers(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "traces"), filepath.Join(t.TempDir(), "others")
	t.Setenv("PGAS_TRACE", dir)
	inner := pgasrun + " -n 3 "
	program := heat + " -rows 8 -cols 8 -steps 1"
	script := traffic + ` && cp "$PGAS_TRACE/rank-000000.trace" "$PGAS_TRACE/before" && ` + inner + program + " && " + inner + "-x PGAS_TRACE=" + other + " " + program
	_, errs, code := call(t, "sh", "-c", script)
	require.Zero(t, code, errs)
	before, err := os.ReadFile(filepath.Join(dir, "before"))
	require.NoError(t, err)
	after, err := os.ReadFile(filepath.Join(dir, "rank-000000.trace"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoFileExists(t, filepath.Join(dir, "rank-000002.trace"))
	require.FileExists(t, filepath.Join(other, "rank-000002.trace"))
	require.Equal(t, 1, strings.Count(errs, "PGAS_TRACE is for the ranks of the job that this was started in"), errs)
}

// TestRelativeTemporaryFolder: ranks that work elsewhere find it, and so does the compiler.
func TestRelativeTemporaryFolder(t *testing.T) {
	source, err := filepath.Abs("../../internal/launch/testdata/rank")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("tmp", 0o700))
	t.Setenv("TMPDIR", "tmp")
	out, errs, code := call(t, "--trace", "out.json", "--wdir", "/", traffic)
	require.Zero(t, code, out+errs)
	require.Contains(t, errs, "spans of 1 ranks")
	_, errs, code = call(t, source, "exit", "0", "3")
	require.Equal(t, 3, code, errs)
	requireEmpty(t, "tmp")
}

// TestTraceOfProgramsOfAnyName: the program that is built, or sent to another host, lies beside what its ranks write and may be called as that is.
func TestTraceOfProgramsOfAnyName(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"left", "timeline"} {
		file := filepath.Join(dir, name+".go")
		require.NoError(t, os.WriteFile(file, []byte("package main\n\nimport \"os\"\n\nfunc main() { os.Exit(3) }\n"), 0o600))
		for _, where := range [][]string{{"-n", "1"}, {"-H", "a", "--launcher", "fork", "--agent-path", pgasrun}} {
			_, errs, code := call(t, append(where, "--trace", filepath.Join(dir, "out.json"), file)...)
			require.Equal(t, 3, code, errs)
		}
	}
}

// TestTraceOfSeveralHosts: what the ranks of agents' hosts write comes here, on one axis of time.
func TestTraceOfSeveralHosts(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	file := filepath.Join(dir, "out.json")
	_, errs, code := call(t, "-H", "a:2,b:2", "--launcher", "fork", "--agent-path", pgasrun, "--trace", file, traffic)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^pgasrun: .*out\.json: \d+ spans of 4 ranks; open it with https://ui\.perfetto\.dev; clocks of other hosts are within [0-9.]+(µs|ms) of this one's$`, errs)
	requireEmpty(t, tmp)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	counts, err := timeline.Verify(f)
	require.NoError(t, err)
	require.Equal(t, 4, counts.Processes)

	_, errs, code = call(t, "-H", "a,b", "--launcher", "fork", "--agent-path", pgasrun, "--trace", file, traffic, "fail")
	require.Equal(t, 7, code, errs)
	require.Contains(t, errs, "spans of 2 ranks")
	_, errs, code = call(t, "-H", "a,b", "--launcher", "fork", "--agent-path", pgasrun, "--trace", file, "true")
	require.Equal(t, codeTrouble, code, errs)
	require.Contains(t, errs, "no rank wrote anything")
	requireEmpty(t, tmp)
}
