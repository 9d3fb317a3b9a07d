package verbs_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gopgas/internal/paired"
	"gopgas/pgas"
	"gopgas/pgas/pgastest"
	"gopgas/transport"
	"gopgas/transport/transporttest"
	"gopgas/transport/verbs"
	"gopgas/window"
)

// row is one operation, done by the library and by the flat functions alone.
type row struct {
	name  string
	kind  transport.Kind
	bytes int
	each  int // operations in one sample
	ours  func(w *window.Window[uint64], buf []uint64) error
	most  func(flat float64) float64 // microseconds that the library may add to so many
	aim   string
}

// What the library may add to the flat functions: a time to what is small, a part to what is large.
func oneMicrosecond(float64) float64  { return 1 }
func twoPerCent(flat float64) float64 { return 0.02 * flat }

var rows = []row{
	{"8 B put + flush", transport.OpWrite, 8, 200, putFlush, oneMicrosecond, "1 us"},
	{"8 B get", transport.OpRead, 8, 200, get, oneMicrosecond, "1 us"},
	{"64-bit fetch-add", transport.OpFetchAdd, 8, 200, fetchAdd, oneMicrosecond, "1 us"},
	{"64 KiB put + flush", transport.OpWrite, 64 << 10, 32, putFlush, twoPerCent, "2 %"},
	{"1 MiB put + flush", transport.OpWrite, 1 << 20, 4, putFlush, twoPerCent, "2 %"},
}

func putFlush(w *window.Window[uint64], buf []uint64) error {
	if err := w.Put(1, 0, buf); err != nil {
		return err
	}
	return w.Flush(1)
}

func get(w *window.Window[uint64], buf []uint64) error { return w.Get(1, 0, buf) }

func fetchAdd(w *window.Window[uint64], _ []uint64) error {
	_, err := window.FetchAdd(w, 1, 0, 1)
	return err
}

// sample returns microseconds per operation.
func sample(each int, f func() error) (float64, error) {
	began := time.Now()
	for range each {
		if err := f(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(began).Nanoseconds()) / 1e3 / float64(each), nil
}

// TestPaired measures the library beside a loop over the same flat functions: in one process, by turns, with the flat loop
// measured twice in each turn as a control. It prints a table and judges nothing. VERBS_TEST_PAIRED says how many turns. In short
// mode it measures what is short.
func TestPaired(t *testing.T) {
	turns := 0
	if _, err := fmt.Sscan(os.Getenv("VERBS_TEST_PAIRED"), &turns); err != nil || turns < 1 {
		t.Skip("Caps: no time to measure (VERBS_TEST_PAIRED)")
	}
	flat := verbs.NewFlat(t, 1<<20)
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Over: "verbs", TimeLimit: 5 * time.Minute}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[uint64](ctx, w.Team(), 1<<17)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := measure(flat, win, turns, w.Team().Engine().Measured); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
}

// measure prints a row of the table as soon as it has been measured, so that who ends it in between has the others.
// What is large comes behind settle.
func measure(flat *verbs.Flat, win *window.Window[uint64], turns int, measured func() bool) error {
	fmt.Println("| us: median (min–max) | ours | C loop | C loop again | ours − C | again − C | ours / C [95 %] | again / C [95 %] | aim for ours − C | |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
	buf := make([]uint64, 1<<17)
	for i, r := range rows {
		ours := func() error { return r.ours(win, buf[:r.bytes/8]) }
		if testing.Short() && large(r) {
			break
		}
		if i > 0 && large(r) && !large(rows[i-1]) {
			if err := settle(win, buf, measured); err != nil {
				return err
			}
		}
		alone := func() error { return flat.Do(r.kind, r.bytes) }
		got, err := byTurns(turns, r.each, alone, ours)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		var more, control []float64
		for i := range got[0] {
			more, control = append(more, got[0][i]-got[1][i]), append(control, got[2][i]-got[1][i])
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %s | %v | %v | %s | %s |\n", r.name, spread(got[0]), spread(got[1]), spread(got[2]), spread(more), spread(control),
			paired.Quotient(got[1], got[0]), paired.Quotient(got[1], got[2]), r.aim, verdict(more, control, r.most(quantile(got[1], 0.5))))
	}
	calls, allocs, err := together(win)
	met := "missed"
	if calls <= 2 && allocs == 0 {
		met = "reached"
	}
	fmt.Printf("| 64 puts of 8 B by PutNB, flushed together | %d crossings into C, %.2f allocations | | | | | | | 2 and 0 | %s |\n", calls, allocs, met)
	return err
}

func large(r row) bool { return r.bytes > 8 }

// settle makes large transfers until the world has measured what they cost, which takes a core beside them, and some more until it has learned how
// its own go: the flat functions have nothing of the kind. It prints how many, and what the first ones took.
func settle(win *window.Window[uint64], buf []uint64, measured func() bool) error {
	for _, r := range slices.Backward(rows) { // the largest first, of which the costs are measured with the peer, too
		if !large(r) {
			continue
		}
		var took []float64
		for k, more := 0, 100; more > 0; k++ {
			if measured() || k >= 1000 {
				more--
			}
			us, err := sample(1, func() error { return r.ours(win, buf[:r.bytes/8]) })
			if err != nil {
				return err
			}
			took = append(took, us)
		}
		fmt.Printf("# before: %d of %s, the first 20 in us %s\n", len(took), r.name, spread(took[:20]))
	}
	return nil
}

// byTurns returns, for each turn, the microseconds of one of ours, of the flat loop and of the flat loop again.
func byTurns(turns, each int, flat, ours func() error) (got [3][]float64, err error) {
	for turn := -1; turn < turns; turn++ { // the first is not counted: caches and queues are cold
		order := []int{1, 0, 2} // flat, ours, flat again
		if turn%2 != 0 {
			order = []int{2, 0, 1}
		}
		for _, k := range order {
			f := flat
			if k == 0 {
				f = ours
			}
			us, err := sample(each, f)
			if err != nil {
				return got, err
			}
			if turn >= 0 {
				got[k] = append(got[k], us)
			}
		}
	}
	return got, nil
}

// verdict says whether what is added is at most so much. What the same loop differs by from itself, in half of all turns, is what the machine
// does: what is missed by no more than that is a tie.
func verdict(more, control []float64, most float64) string {
	var off []float64
	for _, c := range control {
		off = append(off, math.Abs(c))
	}
	over, noise := quantile(more, 0.5)-most, quantile(off, 0.5)
	switch {
	case over <= 0:
		return "reached"
	case over <= noise:
		return fmt.Sprintf("tie: %.1f over, the control ± %.1f", over, noise)
	default:
		return fmt.Sprintf("missed: %.1f over, the control ± %.1f", over, noise)
	}
}

func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[int(q*float64(len(s)-1)+0.5)]
}

// spread is the median, with the least and the greatest.
func spread(v []float64) string {
	return fmt.Sprintf("%.1f (%.1f–%.1f)", quantile(v, 0.5), slices.Min(v), slices.Max(v))
}

func TestVerdict(t *testing.T) {
	quiet, loud := []float64{-0.2, 0, 0.1, 0.2, -0.1}, []float64{-9, 5, 0, -5, 9}
	require.Equal(t, "reached", verdict([]float64{0.9, 0.2, 7}, quiet, 1))
	require.Equal(t, "missed: 0.5 over, the control ± 0.1", verdict([]float64{1.5, 1.5, 1.5}, quiet, 1))
	require.Equal(t, "tie: 0.5 over, the control ± 5.0", verdict([]float64{1.5, 1.5, 1.5}, loud, 1))
	require.Equal(t, "1.5 (1.2–7.0)", spread([]float64{7, 1.2, 1.5}))
}

// together counts calls into C and allocations, at best, of 64 non-blocking puts that are flushed together.
func together(win *window.Window[uint64]) (calls int64, allocs float64, err error) {
	one := make([]uint64, 1)
	calls = 1 << 60
	round := func() {
		for i := range 64 {
			if _, e := win.PutNB(1, i, one); e != nil {
				err = e
			}
		}
		if e := win.Flush(1); e != nil {
			err = e
		}
	}
	for range 100 {
		before := runtime.NumCgoCall()
		round()
		calls = min(calls, runtime.NumCgoCall()-before)
	}
	allocs = math.Inf(1)
	for range 5 { // at best too: what others of this process allocate meanwhile is counted
		allocs = min(allocs, testing.AllocsPerRun(20, round))
	}
	return calls, allocs, err
}

// TestTogether holds what TestPaired shows of crossings and allocations: 64 small puts are posted in one call and their
// completions polled in one.
func TestTogether(t *testing.T) {
	_, err := verbs.Find("")
	transporttest.SkipUnless(t, err)
	pgastest.RunConfig(t, 2, pgastest.Config{NIC: true, Over: "verbs"}, func(ctx context.Context, w *pgas.World) error {
		win, err := window.Allocate[uint64](ctx, w.Team(), 64)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			calls, allocs, err := together(win)
			require.NoError(t, err)
			require.LessOrEqual(t, calls, int64(2), "calls into C for 64 puts and a flush")
			require.Zero(t, allocs)
		}
		return win.Free(ctx)
	})
}
