package pgas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gopgas/internal/timeline"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	pgsync "gopgas/sync"
	"gopgas/window"
)

// shown is an event of a merged timeline.
type shown struct {
	Name, Ph, Cat string
	PID, TID      int
	TS, Dur       float64
	Args          struct {
		Rank  *int
		Bytes int
		At    string
	}
}

// timelineOf merges the files in dir and returns all spans.
func timelineOf(t *testing.T, dir string, ranks int) (out []shown) {
	t.Helper()
	var b bytes.Buffer
	sources := make([]timeline.Source, ranks)
	for r := range sources {
		sources[r].Open = func() (io.ReadCloser, error) { return os.Open(filepath.Join(dir, timeline.FileName(r))) }
	}
	sum, err := timeline.Merge(&b, sources)
	require.NoError(t, err)
	require.Equal(t, ranks, sum.Ranks)
	require.Zero(t, sum.Lost)
	var all struct{ TraceEvents []shown }
	require.NoError(t, json.Unmarshal(b.Bytes(), &all))
	for _, e := range all.TraceEvents {
		if e.Ph != "M" {
			out = append(out, e)
		}
	}
	return out
}

// count counts the events of rank that f holds of.
func count(all []shown, rank int, f func(e shown) bool) (n int) {
	for _, e := range all {
		if e.PID == rank && f(e) {
			n++
		}
	}
	return n
}

// TestTimeline: what a rank does is in its file: transfers, collective calls, registrations, and waits with their lines.
func TestTimeline(t *testing.T) {
	const rounds, bytes = timeline.Every, 100_000
	for _, nic := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "made by it")
		var waited atomic.Bool // until rank 0 is seen to wait in the barrier
		pgastest.RunConfig(t, 2, pgastest.Config{NIC: nic, Timeline: dir, Bulk: "register"}, func(ctx context.Context, w *pgas.World) error {
			win, err := window.Allocate[byte](ctx, w.Team(), bytes)
			if err != nil {
				return err
			}
			buf := make([]byte, bytes)
			for range rounds {
				if err := win.Put(1-w.Rank(), 0, buf); err != nil {
					return err
				}
				if err := win.Put(1-w.Rank(), 0, buf[:8]); err != nil {
					return err
				}
			}
			if err := win.FlushAll(); err != nil {
				return err
			}
			sum := []int{1}
			if err := pgsync.AllReduce(ctx, w.Team(), sum, sum, pgsync.Sum); err != nil {
				return err
			}
			if w.Rank() == 0 {
				go func() {
					for !waited.Load() {
						waited.Store(len(w.Waits()) > 0)
					}
				}()
			} else {
				for !waited.Load() {
					runtime.Gosched()
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			return win.Free(ctx)
		})
		all := timelineOf(t, dir, 2)
		for rank := range 2 {
			is := func(cat, name string) func(shown) bool {
				return func(e shown) bool {
					return e.Cat == cat && e.Name == name && strings.Contains(e.Args.At, "timeline_test.go:")
				}
			}
			require.Equal(t, rounds, count(all, rank, func(e shown) bool {
				return is("transfer", "put")(e) && e.Args.Bytes == bytes && *e.Args.Rank == 1-rank && e.Dur > 0
			}), "every large put")
			small := count(all, rank, func(e shown) bool { return is("transfer", "put")(e) && e.Args.Bytes == 8 })
			require.Positive(t, small)
			require.LessOrEqual(t, small, 1+rounds/timeline.Every, "a sample of the small ones")
			require.Equal(t, 1, count(all, rank, is("collective", "allreduce")))
			require.Positive(t, count(all, rank, is("collective", "barrier")))
			require.Equal(t, nic, count(all, rank, func(e shown) bool {
				return e.Cat == "registration" && e.Name == "register" && strings.Contains(e.Args.At, "timeline_test.go:")
			}) > 0)
		}
		require.Positive(t, count(all, 0, func(e shown) bool {
			return e.Cat == "wait" && e.Name == "barrier" && *e.Args.Rank == 1 && strings.Contains(e.Args.At, "timeline_test.go:")
		}), "rank 0 has waited for rank 1")
	}
}

func TestTimelineThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for _, err := range pgastest.Errors(t, 1, pgastest.Config{Timeline: file}, func(context.Context, *pgas.World) error { return nil }) {
		require.ErrorContains(t, err, "PGAS_TIMELINE")
	}
}

// TestProfile: whoever looks at the goroutines while a rank waits in the library sees what for, and an execution trace has the calls.
func TestProfile(t *testing.T) {
	_, err := pgas.FromEnvironment([]string{"PGAS_PROFILE=everything"})
	require.ErrorIs(t, err, pgas.ErrConfig)
	require.ErrorContains(t, err, "PGAS_PROFILE")

	var seen atomic.Bool
	var out bytes.Buffer
	require.NoError(t, trace.Start(&out))
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Profile: "both"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[int64](ctx, w.Team(), 8)
		if err != nil {
			return err
		}
		if err := win.Put(1-w.Rank(), 0, []int64{1}); err != nil {
			return err
		}
		if w.Rank() == 1 { // rank 0 waits for it in the barrier
			for !seen.Load() {
				var b strings.Builder
				if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
					return err
				}
				seen.Store(strings.Contains(b.String(), `# labels: {"pgas_op":"barrier"}`))
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		return win.Free(ctx)
	})
	trace.Stop()
	for _, want := range []string{"pgas put 0", "pgas put 1", "pgas barrier"} {
		require.Contains(t, out.String(), want)
	}
}
