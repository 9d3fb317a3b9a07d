package verbs_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
}

var rows = []row{
	{"8 B put + flush", transport.OpWrite, 8, 40, putFlush},
	{"8 B get", transport.OpRead, 8, 40, get},
	{"64-bit fetch-add", transport.OpFetchAdd, 8, 40, fetchAdd},
	{"64 KiB put + flush", transport.OpWrite, 64 << 10, 8, putFlush},
	{"1 MiB put + flush", transport.OpWrite, 1 << 20, 1, putFlush},
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
// measured twice in each turn as a control. It prints a table and judges nothing. VERBS_TEST_PAIRED says how many turns.
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
			if err := measure(flat, win, turns); err != nil {
				return err
			}
		}
		return win.Free(ctx)
	})
}

func measure(flat *verbs.Flat, win *window.Window[uint64], turns int) error {
	fmt.Println("| us: median (min–max) | ours | flat | flat again | ours − flat | flat again − flat |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: |")
	buf := make([]uint64, 1<<17)
	for _, r := range rows {
		ours := func() error { return r.ours(win, buf[:r.bytes/8]) }
		alone := func() error { return flat.Do(r.kind, r.bytes) }
		var got [3][]float64
		for turn := -1; turn < turns; turn++ {
			order := []int{1, 0, 2} // flat, ours, flat again
			if turn%2 != 0 {
				order = []int{2, 0, 1}
			}
			for _, k := range order {
				f := alone
				if k == 0 {
					f = ours
				}
				us, err := sample(r.each, f)
				if err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
				if turn >= 0 {
					got[k] = append(got[k], us)
				}
			}
		}
		var more, control []float64
		for i := range got[0] {
			more, control = append(more, got[0][i]-got[1][i]), append(control, got[2][i]-got[1][i])
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", r.name, spread(got[0]), spread(got[1]), spread(got[2]), spread(more), spread(control))
	}
	calls, allocs, err := together(win)
	fmt.Printf("| 64 puts of 8 B by PutNB, flushed together | %d crossings into C, %.2f allocations | | | | |\n", calls, allocs)
	return err
}

// spread is the median, with the least and the greatest.
func spread(v []float64) string {
	s := slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.1f (%.1f–%.1f)", s[len(s)/2], s[0], s[len(s)-1])
}

// together counts calls into C, at best, and allocations of 64 non-blocking puts that are flushed together.
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
	return calls, testing.AllocsPerRun(20, round), err
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
