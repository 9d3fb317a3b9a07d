package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// served is a job of four ranks of testdata/traffic under pgasrun --serve, all of whose traffic has been.
type served struct {
	url string
	end func() // lets it end, and checks that it does so well
}

func serveTraffic(t *testing.T, flags ...string) served {
	t.Helper()
	gate := filepath.Join(t.TempDir(), "go")
	var errs locked
	args := append(append([]string{"-n", "4", "--serve", ":0"}, flags...), traffic, gate)
	cmd := exec.Command(pgasrun, args...)
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	says := regexp.MustCompile(`(?m)^pgasrun: live page at (http://127\.0\.0\.1:\d+/), metrics at http://127\.0\.0\.1:\d+/metrics$`)
	require.Eventually(t, func() bool { return says.MatchString(errs.String()) }, 30*time.Second, 5*time.Millisecond)
	s := served{url: says.FindStringSubmatch(errs.String())[1]}
	require.Eventually(t, func() bool {
		now := s.state(t)
		for r, k := range now.Ranks {
			if r > 0 && (k.State != "waits" || k.Waits[0].Op != "barrier") {
				return false
			}
		}
		return now.Ranks[0].State == "computes"
	}, 30*time.Second, 20*time.Millisecond, "rank 0 alone does not wait: %s", errs.String())
	s.end = func() {
		t.Helper()
		require.NoError(t, os.WriteFile(gate, nil, 0o644))
		select {
		case err := <-exited:
			require.NoError(t, err, errs.String())
		case <-time.After(30 * time.Second):
			require.Fail(t, "the job does not end", errs.String())
		}
		_, err := net.DialTimeout("tcp", s.url[len("http://"):len(s.url)-1], time.Second)
		require.Error(t, err, "the page ends with the job")
	}
	return s
}

// now is what the tests look at of /state.json.
type now struct {
	Ranks []struct {
		State string
		PID   int
		Waits []struct {
			Op, Where string
			Seconds   float64
		}
	}
	Flows map[string][][4]uint64
}

func (s served) state(t *testing.T) (n now) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"state.json", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.NoError(t, json.NewDecoder(res.Body).Decode(&n))
	return n
}

func TestServeInABrowser(t *testing.T) {
	s := serveTraffic(t)
	b := newBrowser(t)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	b.call("Page.navigate", map[string]any{"url": s.url}, nil)
	b.until(`document.querySelectorAll('#ranks .rank').length === 4 && document.querySelectorAll('#matrix rect.cell').length > 0`)

	var ranks [][]string
	b.eval(`[...document.querySelectorAll('#ranks .rank')].map(e => [e.dataset.rank, e.dataset.state, e.querySelector('.what').innerText])`, &ranks)
	require.Equal(t, []string{"0", "computes", "computes"}, ranks[0])
	for i, r := range ranks[1:] {
		require.Equal(t, []string{string(rune('1' + i)), "waits"}, r[:2])
		require.Regexp(t, `^waits\s+barrier for rank \d, \d+\.\d s\s+traffic/main\.go:\d+$`, r[2])
	}

	// The matrix of the NIC has nothing in it but the program's own puts; that of mapped memory has the barriers' flags too.
	type cell [3]float64
	cells := func(via, unit string) (out []cell) {
		b.eval(`(() => { for (const [id, v] of [['via', '`+via+`'], ['unit', '`+unit+`']]) { const e = document.getElementById(id); e.value = v; e.dispatchEvent(new Event('change')); }
			return [...document.querySelectorAll('#matrix rect.cell')].map(e => [e.dataset.from, e.dataset.to, e.dataset.value].map(Number)) })()`, &out)
		return out
	}
	require.Equal(t, []cell{{0, 2, 100_000}, {1, 3, 200_000}, {2, 0, 300_000}, {3, 1, 400_000}}, cells("soft", "bytes"))
	require.Equal(t, []cell{{0, 2, 1}, {1, 3, 2}, {2, 0, 3}, {3, 1, 4}}, cells("soft", "ops"))
	for _, c := range cells("shm", "bytes") {
		want := 0.0
		if int(c[1]) == (int(c[0])+1)%4 {
			want = 1e6 * (c[0] + 1)
		}
		require.InDelta(t, want, c[2], 50_000, "%v", c)
	}
	all, shm := cells("all", "bytes"), s.state(t).Flows["shm"]
	require.Len(t, all, len(shm), "who meets in a barrier are more pairs than the others")
	for i, c := range all {
		want := float64(shm[i][3])
		for _, f := range s.state(t).Flows["soft"] {
			if f[0] == shm[i][0] && f[1] == shm[i][1] {
				want += float64(f[3])
			}
		}
		require.Equal(t, want, c[2])
	}

	var mix string
	b.eval(`document.getElementById('mix').textContent`, &mix)
	require.Contains(t, mix, "shm mapped")
	require.Regexp(t, `soft (zero-copy|superpipe|bounce)`, mix)
	for _, id := range []string{"memory", "rate", "moves"} {
		b.until(`document.querySelectorAll('#` + id + ` polyline')[0].points.length >= 2`)
	}

	var wide [2]float64
	b.eval(`[document.documentElement.scrollWidth, innerWidth]`, &wide)
	require.LessOrEqual(t, wide[0], wide[1], "a phone shows all of its width")
	var papers [2]string
	for i, scheme := range []string{"light", "dark"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		b.eval(`getComputedStyle(document.body).backgroundColor`, &papers[i])
	}
	require.NotEqual(t, papers[0], papers[1], "dark is not light")
	require.Empty(t, b.trouble)

	s.end()
	b.until(`document.getElementById('status').textContent.startsWith('the job has ended after')`)
	b.until(`document.querySelectorAll('#ranks .rank').length === 4`)
}

func TestServeStartsNothingWhereThePortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	mark := filepath.Join(t.TempDir(), "ran")
	for address, why := range map[string]string{
		l.Addr().String():  "is in use by another program",
		"nowhere:at:all":   "wanted :PORT",
		"198.51.100.1:800": "198.51.100.1:800", // not ours
	} {
		_, errs, code := call(t, "--serve", address, "touch", mark)
		require.Equal(t, codeUsage, code)
		require.Contains(t, errs, "--serve")
		require.Contains(t, errs, why)
		require.NoFileExists(t, mark)
	}
}

// A program that is no program of ours is served too: there is little to see.
func TestServeOtherPrograms(t *testing.T) {
	out, errs, code := call(t, "-n", "2", "--serve", ":0", "echo", "hello")
	require.Zero(t, code)
	require.Equal(t, "hello\nhello\n", out)
	require.Contains(t, errs, "live page at")
}
