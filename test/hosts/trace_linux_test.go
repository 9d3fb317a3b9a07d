package hosts

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/timeline"
)

// TestTraceOverSSH: the picture of a job on two hosts, whose clocks are more than an hour apart, has one axis of time. Nobody leaves a barrier before all
// have come to it, so far as pgasrun says that it knows the clocks.
func TestTraceOverSSH(t *testing.T) {
	p := start(t)
	file := p.path("out.json")
	j := p.pgasrun(t, "-H", "h1:2,h2:2", "--rsh", p.ssh("user", "known"), "--trace", file, filepath.Join(binaries, "ring"), "-laps", "200")
	require.Zero(t, j.code, "%s%s", j.out, j.err)
	said := regexp.MustCompile(`(?m)^pgasrun: .*out\.json: \d+ spans of 4 ranks; open it with https://ui\.perfetto\.dev; clocks of other hosts are within ([0-9.]+(?:µs|ms)) of this one's$`).FindStringSubmatch(j.err)
	require.NotNil(t, said, j.err)
	within, err := time.ParseDuration(said[1])
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	counts, err := timeline.Verify(bytes.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, 4, counts.Processes)
	require.Regexp(t, `"rank 1 on h1"`, string(text))
	require.Regexp(t, `"rank 2 on h2"`, string(text))

	type span struct {
		Name, Ph, Cat string
		PID           int
		TS, Dur       float64
	}
	var doc struct{ TraceEvents []span }
	require.NoError(t, json.Unmarshal(text, &doc))
	var barriers [4][]span
	for _, e := range doc.TraceEvents {
		if e.Ph == "X" && e.Cat == "collective" && e.Name == "barrier" {
			barriers[e.PID] = append(barriers[e.PID], e)
		}
	}
	for r := range barriers {
		require.Len(t, barriers[r], len(barriers[0]), "all make the same calls")
		require.NotEmpty(t, barriers[r])
		slices.SortFunc(barriers[r], func(a, b span) int { return int(a.TS - b.TS) })
	}
	for i := range barriers[0] {
		came, left := 0.0, 1e18
		for r := range barriers {
			came, left = max(came, barriers[r][i].TS), min(left, barriers[r][i].TS+barriers[r][i].Dur)
		}
		require.LessOrEqual(t, came, left+2*float64(within.Nanoseconds())/1000+100, "barrier %d, in microseconds", i)
	}
}
