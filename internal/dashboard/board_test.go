package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"gopgas/internal/control"
)

// clock is time that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }
func begun(n int) (*Board, *clock) {
	c := &clock{time.Unix(1000, 0)}
	return newBoard(Job{Program: "prog -x", Ranks: n, Every: 200 * time.Millisecond}, c.now), c
}

func states(s snapshot) (out []string) {
	for _, r := range s.Ranks {
		out = append(out, r.State)
	}
	return out
}

func moved(via, path string, ops, bytes uint64) map[string]map[string]control.Path {
	return map[string]map[string]control.Path{via: {path: {Ops: ops, Bytes: bytes, Waits: 1}}}
}

func TestStates(t *testing.T) {
	b, c := begun(4)
	require.Equal(t, []string{"starting", "starting", "starting", "starting"}, states(b.snapshot()))
	b.Started(1, 77)
	b.Sampled(0, control.Sample{Node: "n"})
	b.Sampled(1, control.Sample{Waits: []control.Wait{{Op: "lock", Peer: 2, Since: 3 * time.Second, Where: "main.go:9", Detail: "held"}}})
	b.Sampled(2, control.Sample{})
	b.Ended(2, "exited with 3 after 1.00 s")
	s := b.snapshot()
	require.Equal(t, []string{"computes", "waits", "ended", "starting"}, states(s))
	require.Equal(t, 77, s.Ranks[1].PID)
	require.Equal(t, "exited with 3 after 1.00 s", s.Ranks[2].Ended)
	require.Equal(t, []waitNow{{"lock", 2, 3, "main.go:9", "held"}}, s.Ranks[1].Waits)

	c.pass(time.Second) // a busy machine is not silence, and waits go on meanwhile
	b.Sampled(0, control.Sample{})
	s = b.snapshot()
	require.Equal(t, []string{"computes", "waits", "ended", "starting"}, states(s))
	require.Equal(t, 4.0, s.Ranks[1].Waits[0].Since)
	c.pass(1500 * time.Millisecond)
	require.Equal(t, []string{"computes", "silent", "ended", "starting"}, states(b.snapshot()))
}

func TestFlowsAndPaths(t *testing.T) {
	b, _ := begun(3)
	b.Sampled(0, control.Sample{Transports: moved("shm", "mapped", 2, 16), Flows: []control.Flow{{With: 1, Via: "shm", Ops: 2, Bytes: 16}, {With: 9, Via: "shm", Ops: 1}}})
	b.Sampled(2, control.Sample{Transports: moved("soft", "inline", 5, 50), Flows: []control.Flow{{With: 1, Via: "soft", Ops: 5, Bytes: 50}}})
	b.Sampled(0, control.Sample{Transports: moved("shm", "mapped", 3, 24), Flows: []control.Flow{{With: 0, Via: "shm", Ops: 1, Bytes: 8}}}) // what has not changed is not said again
	s := b.snapshot()
	require.Equal(t, map[string][]flow{"shm": {{0, 0, 1, 8}, {0, 1, 2, 16}}, "soft": {{2, 1, 5, 50}}}, s.Flows)
	require.Equal(t, []pathNow{
		{"shm", "mapped", control.Path{Ops: 3, Bytes: 24, Waits: 1}},
		{"soft", "inline", control.Path{Ops: 5, Bytes: 50, Waits: 1}},
	}, s.Paths)
	require.Equal(t, uint64(24), s.Ranks[0].Bytes)
	require.Equal(t, 1, s.Group)
}

// D3: what a job shows is bounded.
func TestLargeJobsShareCells(t *testing.T) {
	const n = 1000
	b, _ := begun(n)
	for r := range n {
		b.Sampled(r, control.Sample{Flows: []control.Flow{{With: (r + 1) % n, Via: "shm", Ops: 1, Bytes: 10}, {With: r, Via: "shm", Ops: 1, Bytes: 1}}})
	}
	s := b.snapshot()
	require.Equal(t, 16, s.Group)
	require.Len(t, s.Flows["shm"], 2*63, "with itself, and with the next")
	sum := [2]uint64{}
	for _, f := range s.Flows["shm"] {
		require.Less(t, f[0], uint64(mostCells))
		sum[0] += f[2]
		sum[1] += f[3]
	}
	require.Equal(t, [2]uint64{2 * n, 11 * n}, sum, "nothing is lost")
}

func TestHistory(t *testing.T) {
	b, c := begun(2)
	const samples = 10_000
	for i := range samples {
		c.pass(100 * time.Millisecond)
		b.Sampled(i%2, control.Sample{
			Transports: moved("soft", "bounce", uint64(i/2+1), 100*uint64(i/2+1)),
			Extra:      map[string]float64{"reg.bytes": 4096, "heap.used": 128, "firehose.moves": float64(i / 2)},
		})
	}
	h := b.snapshot().History
	require.Less(t, len(h.Seconds), mostPoints)
	require.GreaterOrEqual(t, len(h.Seconds), mostPoints/4)
	last := len(h.Seconds) - 1
	require.InDelta(t, samples*0.1, h.Seconds[last], 20)
	require.IsIncreasing(t, h.Seconds)
	for i := 1; i <= last; i++ {
		require.Equal(t, 8192.0, h.Registered[i])
		require.Equal(t, 256.0, h.Heap[i])
		require.InEpsilon(t, 1000, h.Rate[i], 0.1) // two ranks, 100 bytes each every 200 ms
		require.InEpsilon(t, 10, h.Ops[i], 0.1)
	}
	b.Ended(0, "exited with 0")
	b.Ended(1, "exited with 0")
	c.pass(time.Hour)
	b.Sampled(0, control.Sample{})
	h = b.snapshot().History
	require.Zero(t, h.Registered[len(h.Registered)-1], "a rank that has ended holds nothing")
}

// exposition is a page of metrics, read by the rules of the text format, version 0.0.4.
type exposition struct {
	kinds  map[string]string
	values map[string]float64 // by name and labels as they stand
}

// parse refuses what Prometheus' own parser would, and what its naming rules advise against.
func parse(text string) (exposition, error) {
	out := exposition{map[string]string{}, map[string]float64{}}
	helped, current := map[string]bool{}, ""
	if !strings.HasSuffix(text, "\n") {
		return out, fmt.Errorf("the last line has no end")
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch words := strings.SplitN(line, " ", 4); {
		case strings.HasPrefix(line, "# HELP "):
			if len(words) < 4 || helped[words[2]] {
				return out, fmt.Errorf("%q: no text, or a second help", line)
			}
			helped[words[2]], current = true, words[2]
		case strings.HasPrefix(line, "# TYPE "):
			if len(words) != 4 || words[2] != current || out.kinds[current] != "" || words[3] != "gauge" && words[3] != "counter" {
				return out, fmt.Errorf("%q: not behind its help, or no type", line)
			}
			if (words[3] == "counter") != strings.HasSuffix(current, "_total") {
				return out, fmt.Errorf("%q: counters, and nothing else, end in _total", line)
			}
			out.kinds[current] = words[3]
		default:
			name, value, err := parseValue(line)
			if err != nil {
				return out, err
			}
			if bare, _, _ := strings.Cut(name, "{"); bare != current || out.kinds[bare] == "" {
				return out, fmt.Errorf("%q: not in its family, which is %s", line, current)
			}
			if _, twice := out.values[name]; twice {
				return out, fmt.Errorf("%q: twice", line)
			}
			out.values[name] = value
		}
	}
	return out, nil
}

func parseValue(line string) (series string, value float64, err error) {
	rest := strings.TrimLeft(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:")
	if rest == line || rest == "" || line[0] >= '0' && line[0] <= '9' {
		return "", 0, fmt.Errorf("%q: no name", line)
	}
	if rest[0] == '{' {
		rest = rest[1:]
		for {
			name, quoted, ok := strings.Cut(rest, `="`)
			if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
				return "", 0, fmt.Errorf("%q: no label at %q", line, rest)
			}
			i := 0
			for ; i < len(quoted) && quoted[i] != '"'; i++ {
				if quoted[i] == '\\' {
					if i++; i == len(quoted) || !strings.ContainsRune(`\n"`, rune(quoted[i])) {
						return "", 0, fmt.Errorf("%q: a wrong escape", line)
					}
				}
			}
			if i+1 >= len(quoted) {
				return "", 0, fmt.Errorf("%q: a label without end", line)
			}
			rest = quoted[i+2:]
			if quoted[i+1] == '}' {
				break
			} else if quoted[i+1] != ',' {
				return "", 0, fmt.Errorf("%q: no comma between labels", line)
			}
		}
	}
	series = line[:len(line)-len(rest)]
	var end string
	if n, err := fmt.Sscanf(rest, " %g%s", &value, &end); n != 1 || !strings.HasPrefix(rest, " ") {
		return "", 0, fmt.Errorf("%q: no value: %v", line, err)
	}
	return series, value, nil
}

func TestMetrics(t *testing.T) {
	b, c := begun(2)
	b.job.Program = `a "b" \ ` + "\nc"
	extra := map[string]float64{}
	for i, k := range counters() {
		extra[k.extra] = float64(i) + 0.5
	}
	for r := range 2 {
		b.Sampled(r, control.Sample{
			Transports: map[string]map[string]control.Path{"shm": {"mapped": {Ops: 3, Bytes: 1 << 60, Waits: 2}, "atomic": {Ops: 1}}, "soft": {"inline": {Ops: 4}}},
			Flows:      []control.Flow{{With: 1 - r, Via: "shm", Ops: 3, Bytes: 24}, {With: r, Via: "soft", Ops: 4}}, Extra: extra,
			Waits: []control.Wait{{Op: "a", Since: time.Second}, {Op: "b", Since: 2 * time.Second}},
		})
	}
	b.Ended(1, "exited with 0")
	c.pass(90 * time.Second)
	text := string(b.metrics())
	got, err := parse(text)
	require.NoError(t, err, text)
	for _, c := range []struct {
		series string
		want   float64
	}{
		{`pgas_job_ranks`, 2},
		{`pgas_job_running_seconds`, 90},
		{`pgas_rank_up{rank="0"}`, 1},
		{`pgas_rank_up{rank="1"}`, 0},
		{`pgas_rank_waits{rank="0"}`, 2},
		{`pgas_rank_longest_wait_seconds{rank="0"}`, 2},
		{`pgas_operations_total{rank="1",transport="soft",path="inline"}`, 4},
		{`pgas_operation_bytes_total{rank="0",transport="shm",path="mapped"}`, 1 << 60},
		{`pgas_operation_waits_total{rank="0",transport="shm",path="mapped"}`, 2},
		{`pgas_flow_bytes_total{rank="0",target="1",transport="shm"}`, 24},
		{`pgas_flow_operations_total{rank="1",target="1",transport="soft"}`, 4},
		{`pgas_heap_reserved_bytes{rank="0"}`, 0.5},
		{`pgas_registration_misses_total{rank="1",cause="partial"}`, 11.5},
		{`pgas_firehose_requests_total{rank="0",outcome="miss"}`, 18.5},
	} {
		v, ok := got.values[c.series]
		require.True(t, ok, "%s is not in\n%s", c.series, text)
		require.Equal(t, c.want, v, c.series)
	}
	const info = `pgas_job_info{program="a \"b\" \\ \nc"}`
	require.Equal(t, 1.0, got.values[info], text)
	require.NotContains(t, got.values, `pgas_rank_waits{rank="1"}`, "it has ended")
	for i := range counters() {
		require.Contains(t, text, fmt.Sprintf(" %g\n", float64(i)+0.5), "every counter has a name")
	}
}

// TestCountersDoNotFall: D5. What a rank says may, where it was not read at one moment, and when its NIC is gone.
func TestCountersDoNotFall(t *testing.T) {
	b, _ := begun(1)
	shown := func(extra map[string]float64) string {
		b.Sampled(0, control.Sample{Extra: extra})
		return string(b.metrics())
	}
	shown(map[string]float64{"reg.hits": 10, "reg.bytes": 4096, "hose.hits": 3})
	page := shown(map[string]float64{"reg.hits": 9, "reg.bytes": 0})
	require.Contains(t, page, `pgas_registration_hits_total{rank="0"} 10`)
	require.Contains(t, page, `pgas_registered_bytes{rank="0"} 0`)
	page = shown(nil)
	require.Contains(t, page, `pgas_registration_hits_total{rank="0"} 10`)
	require.NotContains(t, page, "pgas_registered_bytes")
	require.Contains(t, shown(map[string]float64{"reg.hits": 11}), `pgas_registration_hits_total{rank="0"} 11`)
}

// TestEndedRanksHaveNothing: what a rank had, its end has given back; what it did stays.
func TestEndedRanksHaveNothing(t *testing.T) {
	b, _ := begun(2)
	for r := range 2 {
		b.Sampled(r, control.Sample{Extra: map[string]float64{"reg.bytes": 4096, "reg.peak": 8192, "heap.used": 512, "heap.reserved": 1024, "reg.hits": 3}})
	}
	b.Ended(1, "exited with 0 after 1.00 s")
	s := b.snapshot()
	require.Equal(t, []float64{4096, 0, 512, 0}, []float64{s.Ranks[0].Reg, s.Ranks[1].Reg, s.Ranks[0].Heap, s.Ranks[1].Heap})
	page := string(b.metrics())
	for _, name := range []string{"pgas_registered_bytes", "pgas_heap_used_bytes", "pgas_heap_reserved_bytes"} {
		require.Contains(t, page, name+`{rank="0"}`)
		require.NotContains(t, page, name+`{rank="1"}`)
	}
	require.Contains(t, page, `pgas_registered_peak_bytes{rank="1"} 8192`)
	require.Contains(t, page, `pgas_registration_hits_total{rank="1"} 3`)
}

func TestLabelsOfAnyBytes(t *testing.T) {
	page := string(newBoard(Job{Program: "prog \xe9 -x\n", Ranks: 1}, time.Now).metrics())
	require.Contains(t, page, `pgas_job_info{program="prog `+"\uFFFD"+` -x\n"} 1`)
	require.True(t, utf8.ValidString(page))
}

func TestMetricsOfAJobThatSaysNothing(t *testing.T) {
	b, _ := begun(3)
	got, err := parse(string(b.metrics()))
	require.NoError(t, err)
	require.Equal(t, 1.0, got.values[`pgas_rank_up{rank="2"}`])
}

func TestTheParserRefuses(t *testing.T) {
	const head = "# HELP a b\n# TYPE a gauge\n"
	for _, bad := range []string{
		"a 1", "a 1\n", head + "a\n", head + "a{} 1\n", head + "a{b=\"c} 1\n", head + "a{b=\"\\c\"} 1\n", head + "a x\n", head + "a 1 2x\n",
		head + "b 1\n", head + head, "# TYPE a gauge\na 1\n", head + "a 1\na 1\n", "# HELP a b\n# TYPE a counter\na 1\n", head + "a{b=\"c\"d=\"e\"} 1\n",
	} {
		_, err := parse(bad)
		require.Error(t, err, "%q", bad)
	}
	_, err := parse(head + "a{b=\"c\",d=\"e\"} 1e+06\n")
	require.NoError(t, err)
}
